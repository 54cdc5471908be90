package io.aiodb.cassandra.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

class FiguresTest {
    @Test
    void medianIsTheMiddle() {
        assertEquals(2, Figures.median(new double[] {3, 1, 2}));
        assertEquals(2.5, Figures.median(new double[] {4, 1, 3, 2}));
    }

    @Test
    void everyRoundIsKeptAndTheMedianShown() {
        Figures figures = new Figures();
        for (int round = 1; round <= 3; round++) {
            figures.add("get", "aiodb", new Figures.Figure(1000 * round, round, 10 * round, 5, 4096, 100, 2, List.of()));
        }
        assertEquals(3, figures.json().lines().count());
        assertTrue(figures.json().contains("\"round\":3,\"per_second\":3000.0,\"p50_us\":3.0"), figures.json());
        String line = figures.table().lines().skip(1).findFirst().orElseThrow();
        assertEquals("get aiodb 2000 1000 3000 2 20 5.0 4096 100 6", line.trim().replaceAll(" +", " "));
    }

    @Test
    void windowsSayHowSteadyARoundWas() {
        Figures figures = new Figures();
        List<Double> windows = List.of(100.0, 110.0, 100.0, 50.0, 100.0, 90.0, 80.0);
        figures.add("mix", "aiodb", new Figures.Figure(90, 1, 2, 5, 0, 0, 0, windows));
        assertTrue(figures.json().contains("\"windows\":[100.0, 110.0, 100.0, 50.0"), figures.json());
        assertTrue(
                figures.table().contains("mix aiodb: lowest window to median 0.500, last third to first 0.810"),
                figures.table());
    }
}

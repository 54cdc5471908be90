package io.aiodb.cassandra.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

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
            figures.add("get", "aiodb", new Figures.Figure(1000 * round, round, 10 * round, 5, 4096, 100, 2));
        }
        assertEquals(3, figures.json().lines().count());
        assertTrue(figures.json().contains("\"round\":3,\"per_second\":3000.0,\"p50_us\":3.0"), figures.json());
        String line = figures.table().lines().skip(1).findFirst().orElseThrow();
        assertEquals("get aiodb 2000 1000 3000 2 20 5.0 4096 100 6", line.trim().replaceAll(" +", " "));
    }
}

package io.aiodb.cassandra.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Arrays;
import org.junit.jupiter.api.Test;

class ZipfKeysTest {
    private static final int KEYS = 1000;
    private static final int DRAWS = 1_000_000;

    @Test
    void keysAreDrawnByRank() {
        ZipfKeys keys = new ZipfKeys(KEYS);
        double[] draws = new double[KEYS];
        for (int draw = 0; draw < DRAWS; draw++) {
            draws[(int) keys.next()]++;
        }
        Arrays.sort(draws);
        // The sum of r to the power of -0.99 over the first 1, 10, 100 and 1000 ranks: 1, 2.9561, 5.2946, 7.7290.
        assertEquals(1 / 7.7290, upper(draws, 1), 0.003);
        assertEquals(2.9561 / 7.7290, upper(draws, 10), 0.003);
        assertEquals(5.2946 / 7.7290, upper(draws, 100), 0.003);
    }

    private static double upper(double[] sorted, int ranks) {
        return Arrays.stream(sorted, KEYS - ranks, KEYS).sum() / DRAWS;
    }

    @Test
    void aSingleKeyIsAlwaysDrawn() {
        assertEquals(0, new ZipfKeys(1).next());
    }
}

package io.aiodb.cassandra.integration;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.junit.jupiter.api.Test;

/** What a node says of its reads, and when. */
class ReadCostTest {
    private static final double EXACT = 1e-9;

    private final ReadCost cost = new ReadCost();

    @Test
    void theAverageFollowsTheReads() {
        assertEquals(ReadCost.LEAST_MILLIS, cost.look(), EXACT, "nothing was read yet");
        cost.add(100, 50_000);
        assertEquals(0.5, cost.look(), EXACT);
        cost.add(100, 10_000);
        assertEquals(0.3, cost.look(), EXACT);
        cost.add(1000, 100_000);
        assertEquals(0.2, cost.look(), EXACT);
    }

    @Test
    void fewReadsWaitForMore() {
        cost.add(ReadCost.MIN_READS - 1, 19_000);
        assertEquals(ReadCost.LEAST_MILLIS, cost.look(), EXACT);
        cost.add(1, 1_000);
        assertEquals(1, cost.look(), EXACT);
    }

    @Test
    void readsThatWaitedCountUpToABound() {
        cost.add(ReadCost.MIN_READS, 60_000_000);
        assertEquals(ReadCost.MAX_MILLIS, cost.look(), EXACT);
    }

    @Test
    void itIsForgottenWhileNothingIsRead() {
        cost.add(100, 50_000);
        cost.look();
        double later = 0;
        for (int look = 0; look < ReadCost.HALF_LIFE; look++) {
            later = cost.look();
        }
        assertEquals(0.25, later, EXACT);
        for (int look = 0; look < 10 * ReadCost.HALF_LIFE; look++) {
            later = cost.look();
        }
        assertEquals(ReadCost.LEAST_MILLIS, later, EXACT, "it is never 0");
        cost.add(100, 80_000);
        assertEquals(0.8, cost.look(), EXACT, "what was forgotten does not count");
    }

    /** Otherwise a node that is read seldom would look cheaper than it is. */
    @Test
    void itIsKeptWhileLittleIsRead() {
        cost.add(ReadCost.MIN_READS, 20_000);
        assertEquals(1, cost.look(), EXACT);
        for (int look = 0; look < 10 * ReadCost.MIN_READS; look++) {
            cost.add(1, 1_000);
            assertEquals(1, cost.look(), EXACT);
        }
    }

    /** Otherwise the reads of all would go where they end soonest. */
    @Test
    void aFailureIsNotCheap() {
        cost.add(1000, 1000);
        cost.fail();
        double told = cost.look();
        assertTrue(told > 0.9 * ReadCost.MAX_MILLIS, () -> told + " ms");
        for (int look = 0; look < 10 * ReadCost.HALF_LIFE; look++) {
            cost.look();
        }
        assertTrue(cost.look() < 0.02, "it is tried again");
    }

    @Test
    void onlyNewsAreTold() {
        assertFalse(ReadCostReport.isNews(0, 0));
        assertTrue(ReadCostReport.isNews(0, 0.01));
        assertTrue(ReadCostReport.isNews(0.01, 0));
        assertFalse(ReadCostReport.isNews(1, 1.05));
        assertTrue(ReadCostReport.isNews(1, 1.2));
        assertTrue(ReadCostReport.isNews(1.2, 1));
    }

    @Test
    void aWeightIsANumber() {
        assertEquals(0, ReadCostReport.weight(null));
        assertEquals(0, ReadCostReport.weight("0"));
        assertEquals(10, ReadCostReport.weight("10"));
        assertEquals(0.5, ReadCostReport.weight("0.5"));
        for (String wrong : List.of("", "much", "-1", "NaN", "Infinity")) {
            String message = assertThrows(ConfigurationException.class, () -> ReadCostReport.weight(wrong))
                    .getMessage();
            assertTrue(message.startsWith("-Daiodb.read.cost.weight=" + wrong + ": give the severity"), message);
        }
    }
}

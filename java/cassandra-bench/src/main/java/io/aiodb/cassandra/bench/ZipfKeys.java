package io.aiodb.cassandra.bench;

import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Keys of which the one of rank r is drawn in proportion to r to the power of -0.99, as YCSB's "zipfian" ones are. Which key
 * has which rank has nothing to do with the order of the keys, and is the same each time.
 */
final class ZipfKeys {
    private static final double EXPONENT = 0.99;

    /** By rank. */
    private final int[] keys;

    /** By rank: the share of the draws that this and lower ranks have. */
    private final double[] shares;

    ZipfKeys(long count) {
        keys = shuffled(Math.toIntExact(count));
        shares = new double[keys.length];
        double sum = 0;
        for (int rank = 0; rank < shares.length; rank++) {
            sum += Math.pow(rank + 1, -EXPONENT);
            shares[rank] = sum;
        }
        for (int rank = 0; rank < shares.length; rank++) {
            shares[rank] /= sum;
        }
    }

    private static int[] shuffled(int count) {
        SplittableRandom random = new SplittableRandom(count);
        int[] keys = new int[count];
        for (int i = 0; i < count; i++) {
            int other = random.nextInt(i + 1);
            keys[i] = keys[other];
            keys[other] = i;
        }
        return keys;
    }

    /** From 0 on. Any thread may ask. */
    long next() {
        int found = Arrays.binarySearch(shares, ThreadLocalRandom.current().nextDouble());
        return keys[found < 0 ? -found - 1 : found];
    }
}

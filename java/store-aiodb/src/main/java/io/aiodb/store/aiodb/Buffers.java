package io.aiodb.store.aiodb;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.stream.Stream;

/** Direct buffers that are used again and again: making one costs more than a read. */
final class Buffers {
    static final ByteBuffer NOTHING = ByteBuffer.allocate(0);

    /** Of a scan's first crossing: short scans should not fetch what nobody asks for. */
    static final int FIRST_ROWS_BYTES = 8 << 10;

    /** Of its later ones; each has twice the one before until then. */
    static final int ROWS_BYTES = 128 << 10;

    private static final int FIRST_KEY_BYTES = 512;
    private static final int MAX_POOLED = 32;

    /** The keys of this thread's calls. At most two keys of the greatest length. */
    private static final ThreadLocal<ByteBuffer> KEYS = ThreadLocal.withInitial(() -> direct(FIRST_KEY_BYTES));

    /** By length: each has buffers twice as long as the one before. */
    private final List<ArrayBlockingQueue<ByteBuffer>> pooled =
            Stream.generate(() -> new ArrayBlockingQueue<ByteBuffer>(MAX_POOLED))
                    .limit(pool(ROWS_BYTES) + 1)
                    .toList();

    /** A key for one native call of this thread. */
    ByteBuffer key(ByteBuffer key) {
        return bounds(key, NOTHING);
    }

    /** Two keys, one after the other. */
    ByteBuffer bounds(ByteBuffer lower, ByteBuffer upper) {
        int needed = Math.addExact(lower.remaining(), upper.remaining());
        ByteBuffer buffer = KEYS.get();
        if (buffer.capacity() < needed) {
            buffer = direct(Integer.highestOneBit(needed - 1) << 1);
            KEYS.set(buffer);
        }
        return buffer.clear().put(lower.duplicate()).put(upper.duplicate()).flip();
    }

    /** A buffer for the rows of a crossing. */
    ByteBuffer take(int bytes) {
        ByteBuffer taken = pooled.get(pool(bytes)).poll();
        return taken == null ? direct(bytes) : taken;
    }

    /** Takes a buffer back. Those of other sizes are left to the collector. */
    void giveBack(ByteBuffer buffer) {
        int bytes = buffer.capacity();
        if (bytes >= FIRST_ROWS_BYTES && bytes <= ROWS_BYTES && Integer.bitCount(bytes) == 1) {
            pooled.get(pool(bytes)).offer(buffer);
        }
    }

    private static int pool(int bytes) {
        return Integer.numberOfTrailingZeros(bytes / FIRST_ROWS_BYTES);
    }

    static ByteBuffer direct(int capacity) {
        return ByteBuffer.allocateDirect(capacity).order(ByteOrder.LITTLE_ENDIAN);
    }
}

package io.aiodb.store.aiodb;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.ArrayBlockingQueue;

/** Direct buffers that are used again and again: making one costs more than a read. */
final class Buffers {
    static final ByteBuffer NOTHING = ByteBuffer.allocate(0);

    /** Of a scan's first crossing: short scans should not fetch what nobody asks for. */
    static final int FIRST_ROWS_BYTES = 8 << 10;

    /** Of its later ones. */
    static final int ROWS_BYTES = 128 << 10;

    private static final int FIRST_KEY_BYTES = 512;
    private static final int MAX_POOLED = 32;

    /** The keys of this thread's calls. At most two keys of the greatest length. */
    private static final ThreadLocal<ByteBuffer> KEYS = ThreadLocal.withInitial(() -> direct(FIRST_KEY_BYTES));

    private final ArrayBlockingQueue<ByteBuffer> small = new ArrayBlockingQueue<>(MAX_POOLED);
    private final ArrayBlockingQueue<ByteBuffer> large = new ArrayBlockingQueue<>(MAX_POOLED);

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

    ByteBuffer takeSmall() {
        ByteBuffer pooled = small.poll();
        return pooled == null ? direct(FIRST_ROWS_BYTES) : pooled;
    }

    ByteBuffer takeLarge() {
        ByteBuffer pooled = large.poll();
        return pooled == null ? direct(ROWS_BYTES) : pooled;
    }

    /** Takes a buffer back. Those of other sizes are left to the collector. */
    void giveBack(ByteBuffer buffer) {
        if (buffer.capacity() == FIRST_ROWS_BYTES) {
            small.offer(buffer);
        } else if (buffer.capacity() == ROWS_BYTES) {
            large.offer(buffer);
        }
    }

    static ByteBuffer direct(int capacity) {
        return ByteBuffer.allocateDirect(capacity).order(ByteOrder.LITTLE_ENDIAN);
    }
}

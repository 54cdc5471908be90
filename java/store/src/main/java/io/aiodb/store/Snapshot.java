package io.aiodb.store;

import java.nio.ByteBuffer;
import java.util.Objects;

/**
 * All tables of a store at one moment: every write acknowledged before, whole batches or nothing of them, and nothing
 * later. A store may end a snapshot that has become too expensive to keep: {@link StoreException.SnapshotEnded}.
 */
public interface Snapshot extends AutoCloseable {
    /** As {@link Table#get(byte[])}. The table must have been there when the snapshot was taken. */
    byte[] get(Table table, byte[] key);

    /** As {@link Table#get(ByteBuffer, ByteBuffer)}. */
    default int get(Table table, ByteBuffer key, ByteBuffer value) {
        Objects.requireNonNull(value, "value");
        return Bytes.answer(get(table, Bytes.of(key)), value);
    }

    /** As {@link Table#scan}; the rows may outlive the snapshot or end with it. */
    Rows scan(Table table, Range range);

    /** Gives up what was kept for it. Closing twice does nothing. */
    @Override
    void close();
}

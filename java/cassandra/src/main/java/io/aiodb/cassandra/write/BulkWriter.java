package io.aiodb.cassandra.write;

import io.aiodb.cassandra.format.FrameFolder;
import io.aiodb.store.Batch;
import io.aiodb.store.Durability;
import io.aiodb.store.Store;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;

/**
 * Appends frames, as many as it is given, in batches that every store takes; one update can append more to a row than a store
 * appends without reading. The appends are not there all together, and each is there at least once, unless others stand for
 * it.
 */
public final class BulkWriter {
    /** A longer value, in bytes, is folded with the one that there was before, and put in its place. */
    public static final int MAX_OPERAND_BYTES = 128 << 10;

    /** Every store writes at least so many bytes at once. */
    public static final int MAX_BATCH_BYTES = 512 << 10;

    private final Store store;
    private final Table table;
    private final Batch batch = new Batch();

    /** For one table of a store, whose values are frames. Belongs to one thread. */
    public BulkWriter(Store store, Table table) {
        this.store = store;
        this.table = table;
    }

    /** Appends to a key that nobody else writes meanwhile. */
    public void append(ByteBuffer key, ByteBuffer value) {
        if (value.remaining() <= MAX_OPERAND_BYTES) {
            batch.append(table, key, value);
            if (batch.encoded().limit() > MAX_BATCH_BYTES) {
                flush();
            }
            return;
        }
        flush();
        byte[] name = new byte[key.remaining()];
        key.get(key.position(), name);
        byte[] before = table.get(name);
        batch.put(table, key, before == null ? value : FrameFolder.fold(ByteBuffer.wrap(before), value));
        flush();
    }

    /** Writes the appends that have gathered, with durability {@code INTERVAL}. */
    public void flush() {
        if (batch.size() > 0) {
            store.write(batch, Durability.INTERVAL);
            batch.clear();
        }
    }
}

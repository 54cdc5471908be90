package io.aiodb.store.lmdb;

import io.aiodb.store.Batch;
import io.aiodb.store.Bytes;
import io.aiodb.store.Keys;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.lmdbjava.Cursor;
import org.lmdbjava.Dbi;
import org.lmdbjava.GetOp;
import org.lmdbjava.Txn;

/** Applies a batch in one transaction. */
final class LmdbWrites implements Batch.Visitor {
    private final LmdbStore store;
    private final Txn<byte[]> writing;

    LmdbWrites(LmdbStore store, Txn<byte[]> writing) {
        this.store = store;
        this.writing = writing;
    }

    @Override
    public void put(Table table, ByteBuffer key, ByteBuffer value) {
        rows(table).put(writing, Bytes.of(key), Bytes.of(value));
    }

    @Override
    public void delete(Table table, ByteBuffer key) {
        rows(table).delete(writing, Bytes.of(key));
    }

    @Override
    public void append(Table table, ByteBuffer key, ByteBuffer operand) {
        byte[] name = Bytes.of(key);
        byte[] before = rows(table).get(writing, name);
        byte[] added = Bytes.of(operand);
        if (before != null) {
            store.capabilities().checkValue(Math.addExact(before.length, added.length));
            byte[] joined = Arrays.copyOf(before, before.length + added.length);
            System.arraycopy(added, 0, joined, before.length, added.length);
            added = joined;
        }
        rows(table).put(writing, name, added);
    }

    @Override
    public void deleteRange(Table table, ByteBuffer from, ByteBuffer to) {
        try (Cursor<byte[]> cursor = rows(table).openCursor(writing)) {
            boolean found = from.hasRemaining()
                    ? cursor.get(Bytes.of(from), GetOp.MDB_SET_RANGE)
                    : cursor.first();
            while (found && (!to.hasRemaining() || Keys.compare(ByteBuffer.wrap(cursor.key()), to) < 0)) {
                cursor.delete();
                // The cursor knows that the next row has moved to its place.
                found = cursor.next();
            }
        }
    }

    private Dbi<byte[]> rows(Table table) {
        return store.own(table).place();
    }
}

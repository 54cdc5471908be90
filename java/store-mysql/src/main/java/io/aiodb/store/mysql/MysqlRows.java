package io.aiodb.store.mysql;

import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.StoreException;
import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;

/**
 * A scan of a {@link MysqlStore}, which fetches pages. What comes with the first page needs nothing that lasts; what does not
 * has a view.
 */
final class MysqlRows implements Rows {
    private static final ByteBuffer NOTHING = ByteBuffer.allocate(0).asReadOnlyBuffer();
    private static final int FIRST_PAGE_ROWS = 64;
    private static final int PAGE_ROWS = 256;

    private final MysqlStore store;
    private final String table;
    private final Range range;

    /** Whether this scan is the only one that has the view. */
    private final boolean ownsView;

    /** Null where the first page has all. */
    private MysqlView view;

    private long left;
    private byte[] last;
    private boolean goesOn = true;
    private Iterator<MysqlReads.Row> page = Collections.emptyIterator();
    private boolean closed;
    private ByteBuffer key = NOTHING;
    private ByteBuffer value = NOTHING;

    private MysqlRows(MysqlStore store, String rows, Range range, boolean ownsView) {
        this.store = store;
        this.table = store.server().settings().table(rows);
        this.range = range;
        this.left = range.limit();
        this.ownsView = ownsView;
    }

    /** A scan of a table as it is now. Made in a call of the store. */
    static MysqlRows ofTable(MysqlStore store, String rows, Range range) {
        MysqlRows made = new MysqlRows(store, rows, range, true);
        int wanted = made.wanted(FIRST_PAGE_ROWS);
        MysqlReads.Page first = store.server().read(connection ->
                MysqlReads.page(connection, made.table, range, null, wanted));
        if (first.isWhole() || first.rows().size() >= range.limit() && first.rows().stream().allMatch(row -> row.value() != null)) {
            made.take(first);
        } else {
            made.view = new MysqlView(store);
        }
        return made;
    }

    /** A scan of what a view sees. */
    static MysqlRows ofView(MysqlStore store, String rows, Range range, MysqlView view) {
        MysqlRows made = new MysqlRows(store, rows, range, false);
        made.view = view;
        return made;
    }

    @Override
    public synchronized boolean next() {
        if (closed) {
            throw new StoreException.Closed("the scan was closed");
        }
        return store.run(() -> {
            if (left > 0 && !page.hasNext() && goesOn) {
                int wanted = wanted(PAGE_ROWS);
                take(view.read(connection -> MysqlReads.page(connection, table, range, last, wanted)));
            }
            if (left == 0 || !page.hasNext()) {
                left = 0;
                return false;
            }
            left--;
            MysqlReads.Row row = page.next();
            byte[] found = row.value() == null
                    ? view.read(connection -> MysqlReads.get(connection, table, row.key()))
                    : row.value();
            key = ByteBuffer.wrap(row.key()).asReadOnlyBuffer();
            value = ByteBuffer.wrap(found).asReadOnlyBuffer();
            return true;
        });
    }

    private int wanted(int most) {
        return (int) Math.min(most, Math.max(1, left));
    }

    private void take(MysqlReads.Page fetched) {
        List<MysqlReads.Row> rows = fetched.rows();
        if (!rows.isEmpty()) {
            last = rows.get(rows.size() - 1).key();
        }
        goesOn = fetched.goesOn();
        page = rows.iterator();
    }

    @Override
    public ByteBuffer key() {
        return key.duplicate();
    }

    @Override
    public ByteBuffer value() {
        return value.duplicate();
    }

    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            page = Collections.emptyIterator();
            if (ownsView && view != null) {
                view.close();
                store.removeLater();
            }
        }
    }
}

package io.aiodb.store.mysql;

import io.aiodb.store.CopiedRows;
import io.aiodb.store.Range;
import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;

/**
 * A scan of a {@link MysqlStore}, which fetches pages. What comes with the first page needs nothing that lasts; what does not
 * has a view.
 */
final class MysqlRows extends CopiedRows {
    private static final int FIRST_PAGE_ROWS = 64;
    private static final int PAGE_ROWS = 256;

    private final MysqlStore store;
    private final String table;

    /** Whether this scan is the only one that has the view. */
    private final boolean ownsView;

    /** Null where the first page has all. */
    private MysqlView view;

    private byte[] last;
    private boolean goesOn = true;
    private Iterator<MysqlReads.Row> page = Collections.emptyIterator();

    private MysqlRows(MysqlStore store, String rows, Range range, boolean ownsView) {
        super(range);
        this.store = store;
        this.table = store.server().settings().table(rows);
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
        checkOpen();
        return store.run(() -> {
            if (left() > 0 && !page.hasNext() && goesOn) {
                int wanted = wanted(PAGE_ROWS);
                take(view.read(connection -> MysqlReads.page(connection, table, range, last, wanted)));
            }
            if (left() == 0 || !page.hasNext()) {
                return end();
            }
            MysqlReads.Row row = page.next();
            byte[] found = row.value() == null
                    ? view.read(connection -> MysqlReads.get(connection, table, row.key()))
                    : row.value();
            return show(ByteBuffer.wrap(row.key()), found);
        });
    }

    private int wanted(int most) {
        return (int) Math.min(most, Math.max(1, left()));
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
    public synchronized void close() {
        if (setClosed()) {
            page = Collections.emptyIterator();
            if (ownsView && view != null) {
                view.close();
                store.removeLater();
            }
        }
    }
}

package io.aiodb.store.redis;

import io.aiodb.store.Bytes;
import io.aiodb.store.CopiedRows;
import io.aiodb.store.Keys;
import io.aiodb.store.Range;
import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;

/**
 * A scan of a {@link RedisStore}, which fetches pages. What fits into the first page needs nothing that lasts; what does not
 * has a view.
 */
final class RedisRows extends CopiedRows {
    private static final int FIRST_PAGE_ROWS = 64;
    private static final int PAGE_ROWS = 1024;
    private static final int PAGE_BYTES = 1 << 20;
    private static final byte[] YES = RedisSession.bytes("yes");
    private static final byte[] NO = RedisSession.bytes("");

    /** Some rows in the order of their keys, the number of the last change then, and whether the range goes on. */
    private record Page(NavigableMap<ByteBuffer, byte[]> rows, long sequence, boolean goesOn) {}

    private final RedisStore store;
    private final RedisSession session;
    private final String generation;

    /** Whether this scan is the only one that has the view. */
    private final boolean ownsView;

    /** Refuses to go on when what the scan is of was closed. */
    private final Runnable check;

    /** Null where the first page has all. */
    private RedisHistory.View view;

    private int pageRows = FIRST_PAGE_ROWS;

    /** The last key that was looked at on the server; null before the first. */
    private ByteBuffer last;

    private boolean goesOn = true;
    private Iterator<Map.Entry<ByteBuffer, byte[]>> page = Collections.emptyIterator();

    private RedisRows(
            RedisStore store, RedisSession session, String generation, Range range, boolean ownsView, Runnable check) {
        super(range);
        this.store = store;
        this.session = session;
        this.generation = generation;
        this.ownsView = ownsView;
        this.check = check;
    }

    /** A scan of a table as it is now. Made in a call of the store. */
    static RedisRows ofTable(RedisStore store, RedisSession session, String generation, Range range) {
        RedisRows rows = new RedisRows(store, session, generation, range, true, () -> {});
        Page first = rows.fetch();
        if (first.goesOn() && first.rows().size() < range.limit()) {
            rows.view = session.history().open();
            try {
                // What was changed since the first page was fetched has not said what was there before.
                Page again = rows.view.sequence() == first.sequence() ? first : rows.fetch();
                rows.view.isAt(again.sequence());
                first = again;
            } catch (RuntimeException failure) {
                rows.view.close();
                throw failure;
            }
        }
        rows.take(first);
        return rows;
    }

    /** A scan of what a view sees. */
    static RedisRows ofView(
            RedisStore store,
            RedisSession session,
            String generation,
            Range range,
            RedisHistory.View view,
            Runnable check) {
        RedisRows rows = new RedisRows(store, session, generation, range, false, check);
        rows.view = view;
        return rows;
    }

    @Override
    public synchronized boolean next() {
        checkOpen();
        return store.run(() -> {
            check.run();
            while (left() > 0 && !page.hasNext() && goesOn) {
                view.check();
                take(fetch());
            }
            if (left() == 0 || !page.hasNext()) {
                return end();
            }
            Map.Entry<ByteBuffer, byte[]> row = page.next();
            return show(row.getKey(), range.isKeysOnly() ? null : row.getValue());
        });
    }

    private Page fetch() {
        boolean backward = range.isBackward();
        byte[] lower = bound(range.lower().orElse(null), range.isLowerExcluded(), "-");
        byte[] upper = bound(range.upper().orElse(null), !range.isUpperIncluded(), "+");
        if (last != null) {
            byte[] from = bound(last, true, "");
            lower = backward ? lower : from;
            upper = backward ? from : upper;
        }
        long wanted = Math.min(pageRows, Math.max(1, left()));
        List<Object> answer = session.run(
                RedisScript.SCAN,
                session.marker(),
                RedisSession.bytes(generation),
                RedisSession.bytes(backward ? "backward" : "forward"),
                lower,
                upper,
                RedisSession.bytes(Long.toString(wanted)),
                RedisSession.bytes(Integer.toString(PAGE_BYTES)),
                range.isKeysOnly() ? YES : NO);
        NavigableMap<ByteBuffer, byte[]> rows = new TreeMap<>(Keys::compare);
        for (int at = 2; at < answer.size(); at += 2) {
            rows.put(ByteBuffer.wrap((byte[]) answer.get(at)), (byte[]) answer.get(at + 1));
        }
        boolean more = ((byte[]) answer.get(1)).length > 0;
        return new Page(rows, RedisSession.number(answer.get(0)), more);
    }

    /** Makes a page the current one, as the view sees it. */
    private void take(Page fetched) {
        NavigableMap<ByteBuffer, byte[]> rows = fetched.rows();
        ByteBuffer before = last;
        if (!rows.isEmpty()) {
            last = range.isBackward() ? rows.firstKey() : rows.lastKey();
        }
        goesOn = fetched.goesOn();
        pageRows = PAGE_ROWS;
        if (view != null) {
            ByteBuffer end = goesOn ? last : null;
            ByteBuffer from = range.isBackward() ? end : before;
            ByteBuffer to = range.isBackward() ? before : end;
            view.takeBack(
                    generation,
                    fetched.sequence(),
                    rows,
                    from == null ? range.lower().orElse(null) : from,
                    to == null ? range.upper().orElse(null) : to);
            rows.keySet().removeIf(row -> !isIn(row, before));
        }
        page = (range.isBackward() ? rows.descendingMap() : rows).entrySet().iterator();
    }

    /** Whether a row that a view has brought back belongs to the range, and was not passed. */
    private boolean isIn(ByteBuffer row, ByteBuffer before) {
        return range.isAboveLower(row) && range.isBelowUpper(row) && !row.equals(before);
    }

    private static byte[] bound(ByteBuffer key, boolean excluded, String none) {
        if (key == null) {
            return RedisSession.bytes(none);
        }
        byte[] bytes = Bytes.of(key);
        byte[] bound = new byte[bytes.length + 1];
        bound[0] = (byte) (excluded ? '(' : '[');
        System.arraycopy(bytes, 0, bound, 1, bytes.length);
        return bound;
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

package io.aiodb.store;

import java.nio.ByteBuffer;
import java.util.Optional;

/** Which rows a scan goes through, and how. Immutable; the bounds are copied. */
public final class Range {
    private static final Range ALL = new Range(null, false, null, false, false, false, Long.MAX_VALUE);

    private final byte[] from;
    private final boolean fromExcluded;
    private final byte[] to;
    private final boolean toIncluded;
    private final boolean backward;
    private final boolean keysOnly;
    private final long limit;

    private Range(
            byte[] from,
            boolean fromExcluded,
            byte[] to,
            boolean toIncluded,
            boolean backward,
            boolean keysOnly,
            long limit) {
        this.from = from;
        this.fromExcluded = fromExcluded;
        this.to = to;
        this.toIncluded = toIncluded;
        this.backward = backward;
        this.keysOnly = keysOnly;
        this.limit = limit;
    }

    /** All rows of a table, forward. */
    public static Range all() {
        return ALL;
    }

    /** Leaves out the keys before this one. */
    public Range from(byte[] key) {
        return new Range(key.clone(), false, to, toIncluded, backward, keysOnly, limit);
    }

    /** Leaves out this key and those before it. */
    public Range after(byte[] key) {
        return new Range(key.clone(), true, to, toIncluded, backward, keysOnly, limit);
    }

    /** Leaves out the keys after this one. */
    public Range to(byte[] key) {
        return new Range(from, fromExcluded, key.clone(), true, backward, keysOnly, limit);
    }

    /** Leaves out this key and those after it. */
    public Range before(byte[] key) {
        return new Range(from, fromExcluded, key.clone(), false, backward, keysOnly, limit);
    }

    /** From the last row to the first. */
    public Range backward() {
        return new Range(from, fromExcluded, to, toIncluded, true, keysOnly, limit);
    }

    /** Without values, which then need not be read. */
    public Range keysOnly() {
        return new Range(from, fromExcluded, to, toIncluded, backward, true, limit);
    }

    /** At most so many rows. */
    public Range limit(long rows) {
        if (rows < 0) {
            throw new IllegalArgumentException("a limit of " + rows + " rows");
        }
        return new Range(from, fromExcluded, to, toIncluded, backward, keysOnly, rows);
    }

    /** The lower bound, read-only; none = the first row. */
    public Optional<ByteBuffer> lower() {
        return Optional.ofNullable(from).map(key -> ByteBuffer.wrap(key).asReadOnlyBuffer());
    }

    /** Whether a row at the lower bound is left out. */
    public boolean isLowerExcluded() {
        return fromExcluded;
    }

    /** The upper bound, read-only; none = the last row. */
    public Optional<ByteBuffer> upper() {
        return Optional.ofNullable(to).map(key -> ByteBuffer.wrap(key).asReadOnlyBuffer());
    }

    /** Whether a row at the upper bound belongs to the range. */
    public boolean isUpperIncluded() {
        return toIncluded;
    }

    public boolean isBackward() {
        return backward;
    }

    public boolean isKeysOnly() {
        return keysOnly;
    }

    public long limit() {
        return limit;
    }

    /** Whether a key lies at or behind the lower bound. */
    public boolean isAboveLower(ByteBuffer key) {
        int order = from == null ? 1 : Keys.compare(key, ByteBuffer.wrap(from));
        return fromExcluded ? order > 0 : order >= 0;
    }

    /** Whether a key lies at or before the upper bound. */
    public boolean isBelowUpper(ByteBuffer key) {
        int order = to == null ? -1 : Keys.compare(key, ByteBuffer.wrap(to));
        return toIncluded ? order <= 0 : order < 0;
    }

    /** Whether a scan that comes to a key has not left the range. */
    public boolean isBeforeEnd(ByteBuffer key) {
        return backward ? isAboveLower(key) : isBelowUpper(key);
    }
}

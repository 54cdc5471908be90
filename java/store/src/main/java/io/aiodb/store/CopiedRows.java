package io.aiodb.store;

import java.nio.ByteBuffer;

/** A scan that copies each row that it shows, as stores need whose library takes back or gives away what it has shown. */
public abstract class CopiedRows implements Rows {
    private static final ByteBuffer NOTHING = ByteBuffer.allocate(0).asReadOnlyBuffer();

    protected final Range range;

    private long left;
    private ByteBuffer key = NOTHING;
    private ByteBuffer value = NOTHING;
    private volatile boolean closed;

    protected CopiedRows(Range range) {
        this.range = range;
        this.left = range.limit();
    }

    @Override
    public final ByteBuffer key() {
        return key.duplicate();
    }

    @Override
    public final ByteBuffer value() {
        return value.duplicate();
    }

    /** How many rows the limit leaves; 0 at the end. */
    protected final long left() {
        return left;
    }

    /** Shows a row from now on, and answers for {@link #next}. A value of null is one that is not asked for. */
    protected final boolean show(ByteBuffer key, byte[] value) {
        left--;
        this.key = key.asReadOnlyBuffer();
        this.value = value == null ? NOTHING : ByteBuffer.wrap(value).asReadOnlyBuffer();
        return true;
    }

    /** Takes note that no row follows, and answers for {@link #next}. */
    protected final boolean end() {
        left = 0;
        return false;
    }

    /** Refuses to go on if it was closed. */
    protected final void checkOpen() {
        if (closed) {
            throw new StoreException.Closed("the scan was closed");
        }
    }

    /** Whether it was closed. */
    public final boolean isClosed() {
        return closed;
    }

    /** Takes note that it is closed. False if it was. */
    protected final boolean setClosed() {
        boolean first = !closed;
        closed = true;
        return first;
    }
}

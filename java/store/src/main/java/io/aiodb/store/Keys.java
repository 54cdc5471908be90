package io.aiodb.store;

import java.nio.ByteBuffer;

/** The order of keys. */
public final class Keys {
    private Keys() {}

    /** Compares as sequences of unsigned bytes; a prefix comes first. */
    public static int compare(ByteBuffer left, ByteBuffer right) {
        int mismatch = left.mismatch(right);
        if (mismatch < 0) {
            return 0;
        }
        if (mismatch == left.remaining() || mismatch == right.remaining()) {
            return Integer.compare(left.remaining(), right.remaining());
        }
        int leftByte = Byte.toUnsignedInt(left.get(left.position() + mismatch));
        return Integer.compare(leftByte, Byte.toUnsignedInt(right.get(right.position() + mismatch)));
    }
}

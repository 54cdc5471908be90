package io.aiodb.store;

import java.nio.ByteBuffer;
import java.util.Objects;

/** Between buffers and arrays, for stores whose library takes arrays. */
public final class Bytes {
    private Bytes() {}

    /** A copy of what a buffer holds, which stays as it is. */
    public static byte[] of(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(buffer.position(), bytes);
        return bytes;
    }

    /** Answers with a value, null if there is none, as {@link Table#get(ByteBuffer, ByteBuffer)} says. */
    public static int answer(byte[] found, ByteBuffer value) {
        Objects.requireNonNull(value, "value");
        if (found == null) {
            return -1;
        }
        if (found.length <= value.remaining()) {
            value.put(value.position(), found).limit(value.position() + found.length);
        }
        return found.length;
    }
}

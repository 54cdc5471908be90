package io.aiodb.cassandra.read;

import java.nio.ByteBuffer;
import java.util.Arrays;

/** The key at which a scan is, kept for another one that goes on behind it. */
final class LastKey {
    private static final int FIRST_CAPACITY_BYTES = 64;

    private byte[] bytes = new byte[FIRST_CAPACITY_BYTES];

    /** 0 before the first key: no key is empty. */
    private int length;

    void set(ByteBuffer key) {
        length = key.remaining();
        if (length > bytes.length) {
            bytes = new byte[2 * length];
        }
        key.get(key.position(), bytes, 0, length);
    }

    boolean isSet() {
        return length > 0;
    }

    byte[] copy() {
        return Arrays.copyOf(bytes, length);
    }
}

package io.aiodb.store.redis;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Locale;

/** What the server does in one step; the files say how each is called. */
enum RedisScript {
    OPEN,
    WRITE,
    SCAN,
    TABLE,
    REMOVE;

    /** The script's text. */
    byte[] text() {
        String file = name().toLowerCase(Locale.ROOT) + ".lua";
        try (InputStream text = RedisScript.class.getResourceAsStream(file)) {
            return text.readAllBytes();
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }
}

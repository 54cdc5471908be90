package io.aiodb.store;

import java.nio.charset.StandardCharsets;

/** The names of tables. */
public final class Names {
    private static final int MAX_BYTES = 255;

    private Names() {}

    /** Refuses what cannot name a table. */
    public static String check(String name) {
        int length = name.getBytes(StandardCharsets.UTF_8).length;
        if (length < 1 || length > MAX_BYTES || name.chars().anyMatch(Character::isISOControl)) {
            throw new StoreException.TableName(
                    "`" + name + "` cannot name a table: use 1 to 255 bytes without control characters");
        }
        return name;
    }
}

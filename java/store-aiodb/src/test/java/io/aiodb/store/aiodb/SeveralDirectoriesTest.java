package io.aiodb.store.aiodb;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.store.Durability;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import io.aiodb.store.Stores;
import io.aiodb.store.Table;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A store that lies in several directories. */
class SeveralDirectoriesTest {
    private static final int ROWS = 300;

    @TempDir
    Path disks;

    @Test
    void rowsLieInAllOfThem() throws IOException {
        Path first = disks.resolve("1/store");
        Path second = disks.resolve("2/store");
        try (Store store = open(first, " " + second)) {
            Table table = store.createTable("rows");
            for (int row = 0; row < ROWS; row++) {
                table.put(key(row), new byte[4096], Durability.INTERVAL);
            }
        }
        assertTrue(segments(first) > 0, "segments in the first");
        assertTrue(segments(second) > 0, "segments in the second");
        try (Store store = open(first, second.toString())) {
            for (int row = 0; row < ROWS; row++) {
                assertArrayEquals(new byte[4096], store.table("rows").get(key(row)));
            }
        }
        String message = assertThrows(StoreException.class, () -> open(first, "")).getMessage();
        assertTrue(message.contains("2 directories"), message);
    }

    private static Store open(Path first, String also) {
        Map<String, String> parameters = new HashMap<>(Map.of("segment_bytes", "65536"));
        if (!also.isEmpty()) {
            parameters.put("also", also);
        }
        return Stores.open("aiodb", first, parameters);
    }

    private static byte[] key(int row) {
        return ByteBuffer.allocate(Integer.BYTES).putInt(row).array();
    }

    private static long segments(Path directory) throws IOException {
        try (Stream<Path> files = Files.list(directory.resolve("log"))) {
            return files.count();
        }
    }
}

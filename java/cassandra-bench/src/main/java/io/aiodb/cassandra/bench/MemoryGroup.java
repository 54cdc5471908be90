package io.aiodb.cassandra.bench;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** The control group, of version 1 or 2, that limits a node's memory, its page cache included. */
final class MemoryGroup {
    private final Path directory;

    MemoryGroup(Path directory) {
        this.directory = directory;
    }

    /** Sets the limit, and gives back page cache until it is met. */
    void limit(long bytes) {
        Path first = directory.resolve("memory.limit_in_bytes");
        write(Files.exists(first) ? first : directory.resolve("memory.max"), bytes);
    }

    private static void write(Path file, long value) {
        try {
            Files.writeString(file, Long.toString(value));
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }
}

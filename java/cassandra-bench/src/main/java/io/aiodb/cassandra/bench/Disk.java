package io.aiodb.cassandra.bench;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The disk under a directory, as the kernel counts the writes to it of all processes. What a process is charged for is
 * something else: a page of a mapped file counts there each time that it is soiled, however seldom it reaches the disk.
 */
final class Disk {
    /** What the kernel counts in, whatever the disk's own sectors are. */
    private static final int SECTOR_BYTES = 512;

    /** The seventh number of the disk's `stat`, as the kernel's Documentation/block/stat.rst has them. */
    private static final int SECTORS_WRITTEN = 6;

    private final Path stat;

    private Disk(Path stat) {
        this.stat = stat;
    }

    static Disk under(Path directory) {
        try {
            Path device = Path.of(Files.getFileStore(directory).name());
            Path stat = Path.of("/sys/class/block")
                    .resolve(Files.exists(device) ? device.toRealPath().getFileName() : device.getFileName())
                    .resolve("stat");
            if (!Files.isReadable(stat)) {
                throw new IllegalStateException(directory + " is on " + device
                        + ", for which the kernel counts nothing: run the bench in a directory on a disk");
            }
            return new Disk(stat);
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    /** Bytes written so far, with all that waited in the page cache until now. */
    long settledWrittenBytes() throws InterruptedException {
        try {
            int code = new ProcessBuilder("sync").inheritIO().start().waitFor();
            if (code != 0) {
                throw new IllegalStateException("sync ended with " + code);
            }
            return Long.parseLong(Files.readString(stat).trim().split("\\s+")[SECTORS_WRITTEN]) * SECTOR_BYTES;
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }
}

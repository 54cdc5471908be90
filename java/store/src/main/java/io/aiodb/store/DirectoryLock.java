package io.aiodb.store;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** Keeps a directory to one store at a time, of this process or another, for stores whose library does not. */
public final class DirectoryLock implements AutoCloseable {
    private final FileChannel channel;

    private DirectoryLock(FileChannel channel) {
        this.channel = channel;
    }

    /**
     * Makes the directory where it is missing, and locks it.
     *
     * @throws StoreException.InUse if somebody has it
     */
    public static DirectoryLock take(Path directory) {
        try {
            Files.createDirectories(directory);
            FileChannel channel = FileChannel.open(
                    directory.resolve("LOCK"), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
            try {
                FileLock lock = channel.tryLock();
                if (lock != null) {
                    return new DirectoryLock(channel);
                }
            } catch (OverlappingFileLockException openHere) {
                // Reported below, like one that another process holds.
            }
            channel.close();
        } catch (IOException failure) {
            throw new StoreException.Configuration("cannot make or lock " + directory + ": " + failure, failure);
        }
        throw new StoreException.InUse("the store at " + directory + " is in use: close it there first");
    }

    @Override
    public void close() {
        try {
            channel.close();
        } catch (IOException failure) {
            throw new StoreException.Failed("cannot release the lock of the store: " + failure, failure);
        }
    }
}

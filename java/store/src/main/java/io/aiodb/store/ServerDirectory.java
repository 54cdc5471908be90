package io.aiodb.store;

import java.io.IOException;
import java.io.StringReader;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Properties;
import java.util.UUID;
import java.util.function.Function;

/**
 * The directory of a store whose rows lie on a server. Its file {@code STORE} says which of the rows there are the
 * store's: those that carry its identity. It is locked while the store is open.
 *
 * <p>The file is there before anything is on the server, and says afterwards that there is: a server that then knows
 * nothing of the store has lost it, and is never taken for an empty one.
 *
 * <p>It may say who owns the store. A copy of the directory that another owner opens is refused before the server hears of
 * it, where the copy would take the store over.
 */
public final class ServerDirectory implements AutoCloseable {
    private static final String FILE = "STORE";
    private static final String KIND = "kind";
    private static final String ID = "id";
    private static final String MADE = "made";
    private static final String OWNER = "owner";

    private final Path directory;
    private final String kind;
    private final DirectoryLock lock;
    private final UUID id;

    /** Null if nobody said. */
    private final String owner;

    private volatile boolean made;

    private ServerDirectory(Path directory, String kind, String owner, DirectoryLock lock) throws IOException {
        this.directory = directory;
        this.kind = kind;
        this.lock = lock;
        Path file = directory.resolve(FILE);
        if (!Files.exists(file)) {
            id = UUID.randomUUID();
            this.owner = owner;
            write();
            return;
        }
        Properties found = new Properties();
        try {
            found.load(new StringReader(Files.readString(file)));
            id = UUID.fromString(found.getProperty(ID, ""));
        } catch (IllegalArgumentException noIdentity) {
            throw new StoreException.Configuration(file + " has no store's identity: bring the file back from a backup, or"
                    + " name another directory", noIdentity);
        }
        if (!kind.equals(found.getProperty(KIND))) {
            throw new StoreException.Configuration(directory + " is of a store of kind " + found.getProperty(KIND)
                    + ", not " + kind + ": name another directory");
        }
        made = Boolean.parseBoolean(found.getProperty(MADE));
        String known = found.getProperty(OWNER);
        if (known != null && owner != null && !known.equals(owner)) {
            throw new StoreException.Configuration(directory + " is of a store that belongs to " + known + ", not to " + owner
                    + ": name another directory");
        }
        this.owner = known == null ? owner : known;
        if (known == null && owner != null) {
            write();
        }
    }

    /**
     * Makes the directory where it is missing, and locks it.
     *
     * @param kind of the store
     * @param owner of the store; null if that does not matter
     * @throws StoreException.InUse if somebody has it
     * @throws StoreException.Configuration if it is another store's
     */
    public static ServerDirectory open(Path directory, String kind, String owner) {
        DirectoryLock lock = DirectoryLock.take(directory);
        try {
            return new ServerDirectory(directory, kind, owner, lock);
        } catch (IOException failure) {
            lock.close();
            throw new StoreException.Configuration("cannot use " + directory + ": " + failure, failure);
        } catch (StoreException refused) {
            lock.close();
            throw refused;
        }
    }

    /** {@link #open} for a store, which closes the directory with itself; where the store cannot be opened, this does. */
    public static Store openStore(Path directory, String kind, String owner, Function<ServerDirectory, Store> store) {
        ServerDirectory own = open(directory, kind, owner);
        try {
            return store.apply(own);
        } catch (RuntimeException failure) {
            own.close();
            throw failure;
        }
    }

    /** What the store's rows on the server carry. */
    public UUID id() {
        return id;
    }

    /** Whether the server has had the store. */
    public boolean isMade() {
        return made;
    }

    /** Says for good that the server has the store. */
    public void setMade() {
        if (made) {
            return;
        }
        made = true;
        try {
            write();
        } catch (IOException failure) {
            throw new StoreException.Failed("cannot write to " + directory + ": " + failure, failure);
        }
    }

    /** Where it lies. */
    public Path path() {
        return directory;
    }

    @Override
    public void close() {
        lock.close();
    }

    private void write() throws IOException {
        String text = KIND + "=" + kind + "\n" + ID + "=" + id + "\n" + MADE + "=" + made + "\n"
                + (owner == null ? "" : OWNER + "=" + owner + "\n");
        Path written = directory.resolve(FILE + ".new");
        Files.writeString(written, text, StandardCharsets.UTF_8);
        force(written, StandardOpenOption.WRITE);
        Files.move(written, directory.resolve(FILE), StandardCopyOption.ATOMIC_MOVE);
        force(directory, StandardOpenOption.READ);
    }

    private static void force(Path path, StandardOpenOption how) throws IOException {
        try (FileChannel channel = FileChannel.open(path, how)) {
            channel.force(true);
        }
    }
}

package io.aiodb.store.mysql;

import io.aiodb.store.StoreException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * Reads of single rows below SQL, through {@link HandlerSocket}s. All else needs what only SQL has: a batch is a transaction,
 * a snapshot a view of one moment.
 */
final class MysqlDirect {
    private final MysqlSettings settings;
    private final String id;
    private final long epoch;
    private final Consumer<StoreException> onLost;
    private final Semaphore free;
    private final BlockingQueue<HandlerSocket> idle = new LinkedBlockingQueue<>();

    /**
     * To a server that has the store.
     *
     * @param id the identity of the store, and {@code epoch} how often it was opened, as each connection has to find them
     * @param onLost called where a read finds no server
     */
    MysqlDirect(MysqlSettings settings, String id, long epoch, Consumer<StoreException> onLost) {
        this.onLost = onLost;
        this.settings = settings;
        this.id = id;
        this.epoch = epoch;
        this.free = new Semaphore(settings.connections());
    }

    /** Refuses to go on where the plugin cannot be reached. */
    void check() {
        try {
            idle.add(connect());
        } catch (IOException failure) {
            throw new StoreException.Configuration(where() + " cannot be reached: " + failure.getMessage()
                    + ": load the plugin there (`plugin_load_add` = handlersocket, `plugin_maturity` = beta), set"
                    + " `direct_port` and `direct_secret_file`, or take `access` = jdbc", failure);
        }
    }

    /** The value of a key, or null. */
    byte[] get(String table, byte[] key) {
        await();
        HandlerSocket socket = null;
        try {
            socket = idle.poll();
            if (socket == null) {
                socket = connect();
            }
            List<byte[]> found = socket.find(table, "v", key);
            idle.add(socket);
            return found == null ? null : found.get(0);
        } catch (IOException failure) {
            if (socket != null) {
                socket.close();
            }
            // Those that nobody has tried since are lost as well.
            closeIdle();
            StoreException lost = new StoreException.Unavailable(
                    where() + " cannot be reached, or does not answer: " + failure.getMessage(), failure);
            onLost.accept(lost);
            throw lost;
        } finally {
            free.release();
        }
    }

    private void await() {
        try {
            if (free.tryAcquire(settings.timeout().toMillis(), TimeUnit.MILLISECONDS)) {
                return;
            }
        } catch (InterruptedException interruption) {
            Thread.currentThread().interrupt();
        }
        throw new StoreException.Unavailable("all " + settings.connections() + " connections with " + where() + " were in use for "
                + settings.timeout().toMillis() + " ms: give the store more `connections`, or less to do");
    }

    /** A connection to a server that has the store as this process left it. */
    private HandlerSocket connect() throws IOException {
        HandlerSocket made = new HandlerSocket(settings);
        try {
            List<byte[]> found = made.find(MysqlSchema.STORE, "id,epoch", "1".getBytes(StandardCharsets.US_ASCII));
            if (found == null || !text(found.get(0)).equals(id)) {
                throw new HandlerSocket.Refused("it no longer has this store in the database " + settings.database());
            }
            if (Long.parseLong(text(found.get(1))) != epoch) {
                throw new HandlerSocket.Refused("the store was opened by another process since");
            }
            return made;
        } catch (IOException failure) {
            made.close();
            throw failure;
        }
    }

    private static String text(byte[] field) {
        return new String(field, StandardCharsets.UTF_8);
    }

    private String where() {
        return "HandlerSocket of " + settings.server() + " at port " + settings.directPort();
    }

    /** Closes what nobody uses: the plugin keeps a table from being dropped as long as a connection has it open. */
    void closeIdle() {
        for (HandlerSocket each = idle.poll(); each != null; each = idle.poll()) {
            each.close();
        }
    }
}

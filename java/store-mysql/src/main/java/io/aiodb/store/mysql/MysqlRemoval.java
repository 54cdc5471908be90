package io.aiodb.store.mysql;

import io.aiodb.store.StoreException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;

/** Drops the rows of tables that were emptied or dropped, in a thread of its own, once no snapshot and no scan may read them. */
final class MysqlRemoval implements AutoCloseable {
    private final MysqlStore store;

    private final ExecutorService thread = Executors.newSingleThreadExecutor(body -> {
        Thread made = new Thread(body, "mysql-remove");
        made.setDaemon(true);
        return made;
    });

    private final AtomicBoolean waiting = new AtomicBoolean();

    /** Whether there may be rows to drop: at first those that an earlier process has left. */
    private volatile boolean wanted = true;

    MysqlRemoval(MysqlStore store) {
        this.store = store;
    }

    /** Takes note that there is something to drop. */
    void note() {
        wanted = true;
    }

    /** Begins, unless that is under way. */
    void begin() {
        if (wanted && waiting.compareAndSet(false, true)) {
            try {
                thread.execute(this::remove);
            } catch (RejectedExecutionException closed) {
                // The store is found as it is when it is opened again.
            }
        }
    }

    private void remove() {
        waiting.set(false);
        try {
            // No table is being made meanwhile, whose rows have no name yet.
            store.alone(() -> {
                if (store.views().isEmpty()) {
                    wanted = false;
                    store.server().read(connection -> {
                        for (long generation : store.server().schema().nameless(connection)) {
                            store.server().schema().drop(connection, generation);
                        }
                        return null;
                    });
                }
            });
        } catch (StoreException later) {
            wanted = true;
        }
    }

    @Override
    public void close() {
        thread.shutdown();
    }
}

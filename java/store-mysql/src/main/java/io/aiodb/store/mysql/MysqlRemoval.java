package io.aiodb.store.mysql;

import io.aiodb.store.Removal;

/** Drops the tables on the server that no longer have a name, when there is no snapshot and no scan. */
final class MysqlRemoval extends Removal {
    private final MysqlStore store;

    MysqlRemoval(MysqlStore store) {
        super("mysql-remove");
        this.store = store;
    }

    @Override
    protected boolean remove() {
        // No table is being made meanwhile, whose rows have no name yet.
        return store.alone(() -> {
            if (!store.views().isEmpty()) {
                return false;
            }
            store.server().letGoOfTables();
            return store.server().read(connection -> {
                for (long generation : store.server().schema().nameless(connection)) {
                    store.server().schema().drop(connection, generation);
                }
                return true;
            });
        });
    }
}

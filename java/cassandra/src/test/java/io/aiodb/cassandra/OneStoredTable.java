package io.aiodb.cassandra;

import java.nio.file.Path;
import org.apache.cassandra.schema.TableMetadata;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** Tests of one table whose rows are one stored table. */
abstract class OneStoredTable {
    final TableMetadata table;

    @TempDir
    Path directory;

    TemporaryStore store;
    StoredTable storedTable;

    OneStoredTable() {
        this(Schema.table());
    }

    OneStoredTable(TableMetadata table) {
        this.table = table;
    }

    @BeforeEach
    void open() {
        store = new TemporaryStore(directory.resolve("store"));
        storedTable = StoredTables.attach(store.open(), table.id);
    }

    @AfterEach
    void close() {
        store.close();
    }

    /** Goes on as after a restart of the node. */
    final void restart() {
        store.restart();
        storedTable = StoredTables.attach(store.open(), table.id);
    }
}

package io.aiodb.cassandra;

import java.nio.file.Path;
import org.apache.cassandra.schema.TableMetadata;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** Tests of one table whose rows are one generation. */
abstract class OneGeneration {
    final TableMetadata table;

    @TempDir
    Path directory;

    TemporaryStore store;
    Generation generation;

    OneGeneration() {
        this(Schema.table());
    }

    OneGeneration(TableMetadata table) {
        this.table = table;
    }

    @BeforeEach
    void open() {
        store = new TemporaryStore(directory.resolve("store"));
        generation = Generation.attach(store.open(), table.id);
    }

    @AfterEach
    void close() {
        store.close();
    }

    /** Goes on as after a restart of the node. */
    final void restart() {
        store.restart();
        generation = Generation.attach(store.open(), table.id);
    }
}

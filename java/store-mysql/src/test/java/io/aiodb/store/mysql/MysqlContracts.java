package io.aiodb.store.mysql;

import io.aiodb.store.StoreContracts;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;

/** What every store must do, with a real server of MySQL, on a free port. Subclasses say how rows are read. */
abstract class MysqlContracts extends StoreContracts {
    private static MysqlProcess server;

    MysqlContracts(int modelRuns) {
        super("mysql", modelRuns);
    }

    @BeforeAll
    static void start(@TempDir Path directory) {
        server = new MysqlProcess(directory);
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    @Override
    protected Map<String, String> parameters() {
        return server.parameters();
    }
}

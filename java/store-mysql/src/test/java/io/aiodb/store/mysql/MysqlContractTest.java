package io.aiodb.store.mysql;

import io.aiodb.store.StoreContracts;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;

/** MySQL does what every store must do: a real server, on a free port. */
class MysqlContractTest extends StoreContracts {
    private static MysqlProcess server;

    MysqlContractTest() {
        this(3);
    }

    MysqlContractTest(int modelRuns) {
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

package io.aiodb.store.mysql;

import io.aiodb.store.StoreContracts;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;

/** MariaDB does what every store must do also where single rows are read through its plugin HandlerSocket. */
class MysqlDirectContractTest extends StoreContracts {
    private static MysqlProcess server;

    MysqlDirectContractTest() {
        super("mysql", 1);
    }

    @BeforeAll
    static void start(@TempDir Path directory) {
        server = MysqlProcess.withHandlerSocket(directory);
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

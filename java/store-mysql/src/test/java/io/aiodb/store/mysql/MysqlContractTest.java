package io.aiodb.store.mysql;

import io.aiodb.store.StoreConcurrencyContract;
import io.aiodb.store.StoreContract;
import io.aiodb.store.StoreModelContract;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.io.TempDir;

/** MySQL does what every store must do: a real server, on a free port. */
class MysqlContractTest {
    private static final String KIND = "mysql";

    private static MysqlProcess server;

    @BeforeAll
    static void start(@TempDir Path directory) {
        server = new MysqlProcess(directory);
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    private static Map<String, String> parameters() {
        return Map.of(
                "port", Integer.toString(server.port), "user", "root", "password_file", server.passwordFile());
    }

    @Nested
    class Functions extends StoreContract {
        Functions() {
            super(KIND, parameters());
        }
    }

    @Nested
    class Model extends StoreModelContract {
        Model() {
            super(KIND, parameters(), 3);
        }
    }

    @Nested
    class Concurrency extends StoreConcurrencyContract {
        Concurrency() {
            super(KIND, parameters());
        }
    }
}

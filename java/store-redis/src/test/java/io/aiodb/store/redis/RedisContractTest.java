package io.aiodb.store.redis;

import io.aiodb.store.StoreContracts;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;

/** Redis does what every store must do: a real server, on a free port. */
class RedisContractTest extends StoreContracts {
    private static RedisProcess server;

    RedisContractTest() {
        super("redis", 3);
    }

    @BeforeAll
    static void start(@TempDir Path directory) {
        server = new RedisProcess(directory);
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

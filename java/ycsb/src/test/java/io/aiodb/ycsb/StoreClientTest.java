package io.aiodb.ycsb;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.aiodb.store.mysql.MysqlProcess;
import io.aiodb.store.redis.RedisProcess;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.Vector;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import site.ycsb.ByteIterator;
import site.ycsb.Status;

final class StoreClientTest {
    private static final String TABLE = "usertable";
    private static final int THREADS = 3;
    private static final int UPDATES = 50;

    private static MysqlProcess mysql;
    private static RedisProcess redis;

    @TempDir
    Path directory;

    @BeforeAll
    static void start(@TempDir Path files) {
        mysql = MysqlProcess.withHandlerSocket(files.resolve("mysql"));
        redis = new RedisProcess(files.resolve("redis"));
    }

    @AfterAll
    static void stop() {
        redis.close();
        mysql.close();
    }

    @AfterEach
    void close() {
        Shared.ofThisProcess().close();
        assertEquals(0, Shared.ofThisProcess().failures());
    }

    private StoreClient client(String kind) {
        return client(kind, switch (kind) {
            case "mysql" -> mysql.parameters();
            case "redis" -> redis.parameters();
            default -> Map.of();
        });
    }

    private StoreClient client(String kind, Map<String, String> parameters) {
        Properties properties = Values.workload(3);
        properties.setProperty(StoreClient.KIND, kind);
        properties.setProperty("store.directory", directory.resolve(kind).toString());
        properties.setProperty("store.durability", "none");
        parameters.forEach((name, value) -> properties.setProperty("store." + name, value));
        StoreClient client = new StoreClient();
        client.setProperties(properties);
        client.init();
        return client;
    }

    private static Map<String, String> read(StoreClient client, String key, Set<String> fields) {
        Map<String, ByteIterator> found = new HashMap<>();
        assertEquals(Status.OK, client.read(TABLE, key, fields, found));
        return Values.text(found);
    }

    @ParameterizedTest
    @ValueSource(strings = {"aiodb", "rocksdb", "lmdb", "mysql", "redis"})
    void theOperationsDoWhatYcsbMeans(String kind) {
        StoreClient client = client(kind);
        for (String key : List.of("user3", "user1", "user2")) {
            assertEquals(
                    Status.OK, client.insert(TABLE, key, Values.of("field0", key, "field1", "b", "field2", "c")));
        }
        assertEquals(Status.OK, client.update(TABLE, "user2", Values.of("field1", "new")));
        assertEquals(Map.of("field0", "user2", "field1", "new", "field2", "c"), read(client, "user2", null));
        assertEquals(Map.of("field1", "new"), read(client, "user2", Set.of("field1")));

        Vector<HashMap<String, ByteIterator>> found = new Vector<>();
        assertEquals(Status.OK, client.scan(TABLE, "user2", 5, Set.of("field0"), found));
        assertEquals(List.of(Map.of("field0", "user2"), Map.of("field0", "user3")), found.stream().map(Values::text).toList());

        assertEquals(Status.OK, client.delete(TABLE, "user2"));
        assertEquals(Status.NOT_FOUND, client.read(TABLE, "user2", null, new HashMap<>()));
        assertEquals(Status.NOT_FOUND, client.update(TABLE, "user2", Values.of("field1", "x")));
    }

    @ParameterizedTest
    @ValueSource(strings = {"jdbc", "direct", "handler", "procedure"})
    void rowsOfMysqlAreReadInEachWay(String access) {
        Map<String, String> parameters = new HashMap<>(mysql.parameters());
        parameters.put("access", access);
        StoreClient client = client("mysql", parameters);
        assertEquals(Status.OK, client.insert(TABLE, "user1", Values.of("field0", "a", "field1", "b", "field2", "c")));
        assertEquals(Map.of("field0", "a", "field1", "b", "field2", "c"), read(client, "user1", null));
        assertEquals(Status.NOT_FOUND, client.read(TABLE, "user2", null, new HashMap<>()));
    }

    @ParameterizedTest
    @ValueSource(strings = {"aiodb", "rocksdb", "lmdb", "mysql", "redis"})
    void updatesOfSeveralFieldsAtOnceLoseNone(String kind) throws InterruptedException {
        client(kind).insert(TABLE, "user", Values.of("field0", "", "field1", "", "field2", ""));
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < THREADS; number++) {
            String field = "field" + number;
            StoreClient client = client(kind);
            threads.add(new Thread(() -> {
                for (int count = 1; count <= UPDATES; count++) {
                    client.update(TABLE, "user", Values.of(field, Integer.toString(count)));
                }
            }));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        String last = Integer.toString(UPDATES);
        assertEquals(Map.of("field0", last, "field1", last, "field2", last), read(client(kind), "user", null));
    }
}

package io.aiodb.ycsb;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.Vector;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.exceptions.JedisException;
import site.ycsb.ByteIterator;
import site.ycsb.Status;

/** Against a real redis-server, on a free port. */
final class RedisClientTest {
    private static final String TABLE = "usertable";
    private static final long START_NANOS = TimeUnit.SECONDS.toNanos(60);
    private static final long PAUSE_MILLIS = 20;

    @TempDir
    Path directory;

    private Process server;
    private int port;

    @BeforeEach
    void start() throws IOException, InterruptedException {
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        server = new ProcessBuilder("redis-server", "--port", Integer.toString(port), "--bind", "127.0.0.1", "--save", "")
                .directory(directory.toFile())
                .redirectOutput(directory.resolve("redis.log").toFile())
                .redirectErrorStream(true)
                .start();
        long deadline = System.nanoTime() + START_NANOS;
        while (!answers()) {
            assertTrue(server.isAlive() && System.nanoTime() < deadline, "redis-server starts");
            Thread.sleep(PAUSE_MILLIS);
        }
    }

    @AfterEach
    void stop() throws InterruptedException {
        server.destroyForcibly().waitFor();
    }

    private boolean answers() {
        try (Jedis redis = new Jedis("127.0.0.1", port)) {
            return redis.ping().equals("PONG");
        } catch (JedisException notYet) {
            return false;
        }
    }

    private RedisClient client(String form) {
        Properties properties = Values.workload(2);
        properties.setProperty("redis.port", Integer.toString(port));
        properties.setProperty(RedisClient.FORM, form);
        properties.setProperty("scanproportion", "0.5");
        RedisClient client = new RedisClient();
        client.setProperties(properties);
        client.init();
        return client;
    }

    @ParameterizedTest
    @ValueSource(strings = {"hash", "string"})
    void theOperationsDoWhatYcsbMeans(String form) {
        RedisClient client = client(form);
        for (String key : List.of("user3", "user1", "user2", "v")) {
            assertEquals(Status.OK, client.insert(TABLE, key, Values.of("field0", key, "field1", "b")));
        }
        assertEquals(Status.OK, client.update(TABLE, "user2", Values.of("field1", "new")));
        Map<String, ByteIterator> found = new HashMap<>();
        assertEquals(Status.OK, client.read(TABLE, "user2", null, found));
        assertEquals(Map.of("field0", "user2", "field1", "new"), Values.text(found));

        Vector<HashMap<String, ByteIterator>> scanned = new Vector<>();
        assertEquals(Status.OK, client.scan(TABLE, "user2", 2, Set.of("field0"), scanned));
        assertEquals(
                List.of(Map.of("field0", "user2"), Map.of("field0", "user3")), scanned.stream().map(Values::text).toList());

        assertEquals(Status.OK, client.delete(TABLE, "user2"));
        assertEquals(Status.NOT_FOUND, client.read(TABLE, "user2", null, new HashMap<>()));
        scanned.clear();
        client.scan(TABLE, "user2", 2, Set.of("field0"), scanned);
        assertEquals(List.of(Map.of("field0", "user3"), Map.of("field0", "v")), scanned.stream().map(Values::text).toList());
        client.cleanup();
    }

    @Test
    void everyWorkloadOfYcsbRuns() throws Exception {
        for (String workload : List.of("workloada", "workloade")) {
            String[] tail = {"redis", "-P", Path.of("..", "..", "workloads", workload).toString(), "-p", "redis.port=" + port,
                "-p", "table=" + workload, "-threads", "3"};
            for (String phase : List.of("load", "run")) {
                String[] line = new String[tail.length + 1];
                line[0] = phase;
                System.arraycopy(tail, 0, line, 1, tail.length);
                Command command = Command.run(line);
                assertEquals(0, command.exitCode(), command.output());
            }
        }
    }

    @Test
    void aServerThatDiesFailsTheRun() throws Exception {
        Process run = Command.start(List.of(
                "load", "redis", "-p", "recordcount=100000000", "-p", "redis.port=" + port, "-threads", "2"));
        try (Jedis redis = new Jedis("127.0.0.1", port)) {
            while (redis.dbSize() == 0) {
                Thread.sleep(PAUSE_MILLIS);
            }
        }
        stop();
        Command ended = Command.end(run);
        assertEquals(1, ended.exitCode(), ended.output());
        assertTrue(ended.output().contains("what was measured does not count"), ended.output());
    }

    @Test
    void noServerIsSaidPlainly() throws Exception {
        stop();
        Command load = Command.run("load", "redis", "-p", "recordcount=10", "-p", "redis.port=" + port);
        assertEquals(1, load.exitCode(), load.output());
        assertTrue(load.output().contains("cannot use Redis at 127.0.0.1:" + port), load.output());
    }
}

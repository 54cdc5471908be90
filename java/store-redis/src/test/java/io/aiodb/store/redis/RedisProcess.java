package io.aiodb.store.redis;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A redis-server of the tests, on a free port, with its files in a directory. */
final class RedisProcess implements AutoCloseable {
    private static final long START_NANOS = TimeUnit.SECONDS.toNanos(60);
    private static final long PAUSE_MILLIS = 10;

    final int port;
    private final Path directory;
    private final List<String> command;
    private Process process;

    /** Starts one that syncs always, unless further options say otherwise. */
    RedisProcess(Path directory, String... options) {
        this.directory = directory;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
        command = new ArrayList<>(List.of("redis-server", "--port", Integer.toString(port), "--bind", "127.0.0.1"));
        command.addAll(List.of("--save", "", "--appendonly", "yes", "--appendfsync", "always"));
        command.addAll(List.of(options));
        start();
    }

    void start() {
        try {
            Files.createDirectories(directory);
            process = new ProcessBuilder(command)
                    .directory(directory.toFile())
                    .redirectOutput(ProcessBuilder.Redirect.appendTo(directory.resolve("redis.log").toFile()))
                    .redirectErrorStream(true)
                    .start();
            long deadline = System.nanoTime() + START_NANOS;
            while (!answers()) {
                assertTrue(process.isAlive() && System.nanoTime() < deadline, "redis-server starts");
                Thread.sleep(PAUSE_MILLIS);
            }
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        } catch (InterruptedException interruption) {
            throw new AssertionError("interrupted", interruption);
        }
    }

    private boolean answers() {
        return isReady(say("PING"));
    }

    /** One that wants a password is ready when it says so. */
    private static boolean isReady(String answer) {
        return answer.startsWith("+PONG") || answer.startsWith("-NOAUTH");
    }

    /** Sends a line to the server. Empty if there is none. */
    String say(String line) {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
            socket.getOutputStream().write((line + "\r\nQUIT\r\n").getBytes(StandardCharsets.UTF_8));
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException notThere) {
            return "";
        }
    }

    long pid() {
        return process.pid();
    }

    /** Ends it with SIGKILL. */
    void kill() {
        try {
            process.destroyForcibly().waitFor();
        } catch (InterruptedException interruption) {
            throw new AssertionError("interrupted", interruption);
        }
    }

    @Override
    public void close() {
        kill();
    }
}

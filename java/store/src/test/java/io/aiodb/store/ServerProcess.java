package io.aiodb.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/** A server of the tests, on a free port, with its files in a directory. Subclasses start it when they are made. */
public abstract class ServerProcess implements AutoCloseable {
    private static final long PAUSE_MILLIS = 20;

    protected final Path directory;
    protected final int port;
    private final Duration longestStart;
    private Process process;

    protected ServerProcess(Path directory, Duration longestStart) {
        this.directory = directory;
        this.longestStart = longestStart;
        port = freePort();
        try {
            Files.createDirectories(directory);
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    /** A port at which nobody listens. */
    protected static int freePort() {
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return free.getLocalPort();
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    /** What runs it: a program and its arguments. */
    protected abstract List<String> command();

    /** Whether it is ready. */
    protected abstract boolean answers();

    /** Where a store finds it. */
    public abstract Map<String, String> parameters();

    /** Starts it, at first or again, and waits until it is ready. */
    public final void start() {
        try {
            process = new ProcessBuilder(command())
                    .directory(directory.toFile())
                    .redirectOutput(ProcessBuilder.Redirect.appendTo(directory.resolve("server.log").toFile()))
                    .redirectErrorStream(true)
                    .start();
            long deadline = System.nanoTime() + longestStart.toNanos();
            while (!answers()) {
                assertTrue(process.isAlive() && System.nanoTime() < deadline, () -> command().get(0) + " starts");
                Thread.sleep(PAUSE_MILLIS);
            }
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        } catch (InterruptedException interruption) {
            throw new AssertionError("interrupted", interruption);
        }
    }

    /** Sends it a signal. */
    public final void signal(String name) {
        try {
            assertEquals(0, new ProcessBuilder("kill", "-" + name, Long.toString(process.pid())).start().waitFor());
            // Its threads go on until each of them has been stopped.
            while (name.equals("STOP") && !isStopped()) {
                Thread.sleep(1);
            }
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        } catch (InterruptedException interruption) {
            throw new AssertionError("interrupted", interruption);
        }
    }

    /** Whether the kernel has stopped all of its threads. */
    private boolean isStopped() throws IOException {
        try (Stream<Path> threads = Files.list(Path.of("/proc", Long.toString(process.pid()), "task"))) {
            for (Path thread : threads.toList()) {
                String stat;
                try {
                    stat = Files.readString(thread.resolve("stat"));
                } catch (NoSuchFileException ended) {
                    continue;
                }
                // The state stands behind the name, which is in brackets.
                if (stat.charAt(stat.lastIndexOf(')') + 2) != 'T') {
                    return false;
                }
            }
        }
        return true;
    }

    /** Ends it with SIGKILL. */
    public final void kill() {
        try {
            process.destroyForcibly().waitFor();
        } catch (InterruptedException interruption) {
            throw new AssertionError("interrupted", interruption);
        }
    }

    @Override
    public final void close() {
        kill();
    }
}

package io.aiodb.store.mysql;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A mariadbd of the tests, on a free port, with its files in a directory. Its user `root` has the password `secret`. */
final class MysqlProcess implements AutoCloseable {
    static final String PASSWORD = "secret";

    private static final long START_NANOS = TimeUnit.SECONDS.toNanos(120);
    private static final long PAUSE_MILLIS = 20;

    final int port;
    private final Path directory;
    private final List<String> command;
    private Process process;

    /** Starts one, with further options. */
    MysqlProcess(Path directory, String... options) {
        this.directory = directory;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
            Files.createDirectories(directory);
            Path initial = directory.resolve("initial.sql");
            Files.writeString(initial, "SET PASSWORD FOR root@localhost = PASSWORD('" + PASSWORD + "');\n");
            run(List.of("mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db",
                    "--user=" + System.getProperty("user.name"), "--datadir=" + directory.resolve("data")));
            command = new ArrayList<>(List.of(
                    "mariadbd", "--no-defaults", "--datadir=" + directory.resolve("data"), "--port=" + port,
                    "--bind-address=127.0.0.1", "--socket=" + directory.resolve("socket"), "--user="
                            + System.getProperty("user.name"), "--init-file=" + initial, "--innodb-buffer-pool-size=64M"));
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
        command.addAll(List.of(options));
        start();
    }

    private void run(List<String> program) throws IOException {
        try {
            Process run = new ProcessBuilder(program)
                    .redirectOutput(directory.resolve("install.log").toFile())
                    .redirectErrorStream(true)
                    .start();
            assertEquals(0, run.waitFor(), () -> "see " + directory.resolve("install.log"));
        } catch (InterruptedException interruption) {
            throw new AssertionError("interrupted", interruption);
        }
    }

    void start() {
        try {
            process = new ProcessBuilder(command)
                    .redirectOutput(ProcessBuilder.Redirect.appendTo(directory.resolve("server.log").toFile()))
                    .redirectErrorStream(true)
                    .start();
            long deadline = System.nanoTime() + START_NANOS;
            while (!answers()) {
                assertTrue(process.isAlive() && System.nanoTime() < deadline, "mariadbd starts");
                Thread.sleep(PAUSE_MILLIS);
            }
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        } catch (InterruptedException interruption) {
            throw new AssertionError("interrupted", interruption);
        }
    }

    private boolean answers() {
        try (Connection connection = connect()) {
            return connection.isValid(1);
        } catch (SQLException notYet) {
            return false;
        }
    }

    private Connection connect() throws SQLException {
        return DriverManager.getConnection("jdbc:mariadb://127.0.0.1:" + port + "/", "root", PASSWORD);
    }

    /** Runs a statement, and answers with the first column of its rows. */
    List<String> say(String text) {
        List<String> found = new ArrayList<>();
        try (Connection connection = connect();
                Statement statement = connection.createStatement()) {
            if (statement.execute(text)) {
                try (ResultSet rows = statement.getResultSet()) {
                    while (rows.next()) {
                        found.add(rows.getString(1));
                    }
                }
            }
            return found;
        } catch (SQLException failure) {
            throw new AssertionError(text, failure);
        }
    }

    /** A file with the password. */
    String passwordFile() {
        try {
            Path file = directory.resolve("password");
            Files.writeString(file, PASSWORD + "\n");
            return file.toString();
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
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

package io.aiodb.store.mysql;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.aiodb.store.ServerProcess;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A mariadbd of the tests. Its user `root` has the password `secret`. */
public final class MysqlProcess extends ServerProcess {
    static final String PASSWORD = "secret";

    private final List<String> command;

    /** Of HandlerSocket; 0 without it. */
    private int directPort;

    /** Starts one, with further options. */
    public MysqlProcess(Path directory, String... options) {
        super(directory, Duration.ofMinutes(2));
        Path initial = directory.resolve("initial.sql");
        String data = "--datadir=" + directory.resolve("data");
        String user = "--user=" + System.getProperty("user.name");
        try {
            Files.writeString(initial, "SET PASSWORD FOR root@localhost = PASSWORD('" + PASSWORD + "');\n");
            run(List.of("mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db",
                    user, data));
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
        command = new ArrayList<>(List.of(
                "mariadbd", "--no-defaults", data, "--port=" + port, "--bind-address=127.0.0.1",
                "--socket=" + directory.resolve("socket"), user, "--init-file=" + initial, "--innodb-buffer-pool-size=64M"));
        command.addAll(List.of(options));
        start();
    }

    /** One with the plugin HandlerSocket, which has the same password; stores that are told of it read through that. */
    public static MysqlProcess withHandlerSocket(Path directory) {
        int read = freePort();
        MysqlProcess made = new MysqlProcess(
                directory, "--plugin-maturity=beta", "--plugin-load-add=handlersocket", "--handlersocket-address=127.0.0.1",
                "--handlersocket-port=" + read, "--handlersocket-port-wr=" + freePort(), "--handlersocket-threads=2",
                "--handlersocket-threads-wr=1", "--handlersocket-plain-secret=" + PASSWORD);
        made.directPort = read;
        return made;
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

    @Override
    protected List<String> command() {
        return command;
    }

    @Override
    public Map<String, String> parameters() {
        Map<String, String> parameters = new HashMap<>(
                Map.of("port", Integer.toString(port), "user", "root", "password_file", passwordFile()));
        if (directPort != 0) {
            parameters.put("access", "direct");
            parameters.put("direct_port", Integer.toString(directPort));
            parameters.put("direct_secret_file", passwordFile());
        }
        return parameters;
    }

    @Override
    protected boolean answers() {
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

    private String passwordFile() {
        try {
            Path file = directory.resolve("password");
            Files.writeString(file, PASSWORD + "\n");
            return file.toString();
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }
}

package io.aiodb.store.redis;

import io.aiodb.store.ServerProcess;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A server of the tests: redis-server, or `aiodb serve` where the property `aiodb.command` names that command. */
public final class RedisProcess extends ServerProcess {
    private static final String AIODB = System.getProperty("aiodb.command", "");

    private final List<String> command;

    /** Starts one that syncs always, unless further options say otherwise. */
    public RedisProcess(Path directory, String... options) {
        super(directory, Duration.ofMinutes(1));
        String number = Integer.toString(port);
        command = new ArrayList<>(AIODB.isEmpty()
                ? List.of("redis-server", "--port", number, "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes",
                        "--appendfsync", "always")
                : List.of(AIODB, "serve", "data", "--port", number, "--durability", "sync"));
        command.addAll(List.of(options));
        start();
    }

    @Override
    protected List<String> command() {
        return command;
    }

    /** One that wants a password is ready when it says so. */
    @Override
    protected boolean answers() {
        String answer = say("PING");
        return answer.startsWith("+PONG") || answer.startsWith("-NOAUTH");
    }

    @Override
    public Map<String, String> parameters() {
        return Map.of("port", Integer.toString(port));
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
}

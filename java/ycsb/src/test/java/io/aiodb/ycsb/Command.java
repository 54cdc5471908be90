package io.aiodb.ycsb;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** The command as a process of its own, as a user runs it. */
record Command(int exitCode, String output) {
    static Process start(List<String> arguments) throws IOException {
        List<String> line = new ArrayList<>(List.of(
                ProcessHandle.current().info().command().orElse("java"),
                "--add-opens=java.base/java.nio=ALL-UNNAMED",
                "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
                "-cp",
                System.getProperty("java.class.path"),
                Main.class.getName()));
        line.addAll(arguments);
        return new ProcessBuilder(line).redirectErrorStream(true).start();
    }

    static Command run(String... arguments) throws IOException, InterruptedException {
        return end(start(List.of(arguments)));
    }

    static Command end(Process process) throws IOException, InterruptedException {
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return new Command(process.waitFor(), output);
    }

    /** What YCSB says it did: the number behind a line's name. */
    long figure(String name) {
        return output.lines()
                .filter(line -> line.startsWith(name + ", "))
                .map(line -> line.substring(name.length() + 2))
                .mapToLong(number -> (long) Double.parseDouble(number))
                .findFirst()
                .orElseThrow(() -> new AssertionError("no line " + name + " in\n" + output));
    }
}

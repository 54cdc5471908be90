package io.aiodb.cassandra;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * A file of CQL statements, each of which ends with a semicolon at the end of a line. Notes before a statement say
 * what it must do, so that none fails on both sides unnoticed:
 *
 * <pre>
 * -- fails PART OF THE MESSAGE
 * -- empty       it returns no rows
 * -- page N      it is read in pages of N rows
 * -- sleep N     wait N seconds before it
 * -- flush       write memory to the disk before it
 * </pre>
 */
record Script(String name, List<Step> steps) {
    /**
     * A statement and what is said of it.
     *
     * @param message a part of the message with which it must fail, or null if it must succeed
     * @param empty that it returns no rows, where a SELECT otherwise must
     * @param page rows for each page
     */
    record Step(String statement, String message, boolean empty, int page, int sleepSeconds, boolean flush) {
        boolean selects() {
            return statement.startsWith("SELECT");
        }
    }

    static Script read(String name) {
        try (InputStream file = Script.class.getResourceAsStream("/statements/" + name + ".cql")) {
            return new Script(name, parse(name, new String(file.readAllBytes(), StandardCharsets.UTF_8)));
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    private static List<Step> parse(String name, String text) {
        List<Step> steps = new ArrayList<>();
        Step saidOfNext = new Step("", null, false, 5000, 0, false);
        Step said = saidOfNext;
        StringBuilder statement = new StringBuilder();
        for (String line : text.lines().toList()) {
            if (line.startsWith("-- ")) {
                said = note(name, said, line.substring(3));
            } else if (!line.startsWith("//")) {
                statement.append(line.isEmpty() || statement.isEmpty() ? "" : "\n").append(line);
                if (line.endsWith(";")) {
                    String whole = statement.substring(0, statement.length() - 1);
                    steps.add(new Step(whole, said.message, said.empty, said.page, said.sleepSeconds, said.flush));
                    statement.setLength(0);
                    said = saidOfNext;
                }
            }
        }
        if (!statement.isEmpty()) {
            throw new IllegalArgumentException(name + ".cql ends within a statement: " + statement);
        }
        return steps;
    }

    private static int number(String word) {
        return Integer.parseInt(word);
    }

    private static Step note(String name, Step said, String note) {
        String[] words = note.split(" ", 2);
        return switch (words[0]) {
            case "fails" -> new Step("", words[1], said.empty, said.page, said.sleepSeconds, said.flush);
            case "empty" -> new Step("", said.message, true, said.page, said.sleepSeconds, said.flush);
            case "page" -> new Step("", said.message, said.empty, number(words[1]), said.sleepSeconds, said.flush);
            case "sleep" -> new Step("", said.message, said.empty, said.page, number(words[1]), said.flush);
            case "flush" -> new Step("", said.message, said.empty, said.page, said.sleepSeconds, true);
            default -> throw new IllegalArgumentException(name + ".cql has a note that is unknown: " + note);
        };
    }
}

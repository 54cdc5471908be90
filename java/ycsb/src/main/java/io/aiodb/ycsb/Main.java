package io.aiodb.ycsb;

import java.util.List;
import site.ycsb.Client;

/** The command: checks what is asked for, and lets YCSB's client do it. */
public final class Main {
    /** The exit code of a run in which something failed. */
    static final int FAILED = 1;

    /** The exit code of what is refused before anything starts. */
    private static final int REFUSED = 2;

    private Main() {}

    /** See {@link Arguments#USAGE}. */
    public static void main(String[] given) {
        List<String> arguments;
        try {
            arguments = Arguments.ofClient(List.of(given));
        } catch (Arguments.Refused refusal) {
            System.err.println("ycsb: " + refusal.getMessage());
            System.exit(REFUSED);
            return;
        }
        Runtime.getRuntime().addShutdownHook(new Thread(Shared.ofThisProcess()::end, "end of the run"));
        Client.main(arguments.toArray(String[]::new));
    }
}

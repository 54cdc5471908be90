package io.aiodb.store;

import static io.aiodb.store.StoreContract.bytes;
import static io.aiodb.store.StoreContract.text;
import static io.aiodb.store.StoreContract.wrap;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

/** What every store must do when many threads use it, when it is closed under them, and when its process is killed. */
public abstract class StoreConcurrencyContract extends Contract {
    private static final int THREADS = 4;

    protected StoreConcurrencyContract(String kind, Map<String, String> parameters) {
        super(kind, parameters);
    }

    @Test
    void threadsDoNotLoseEachOthersWrites() throws Exception {
        try (Store store = open("store")) {
            Table table = store.createTable("rows");
            int each = 300;
            together(thread -> {
                for (int row = 0; row < each; row++) {
                    table.put(bytes(thread + "/" + row), bytes("v" + row), Durability.NONE);
                    table.append(bytes("all"), bytes("."), Durability.NONE);
                    assertEquals("v" + row, text(table.get(bytes(thread + "/" + row))));
                }
            });
            assertEquals(THREADS * each + 1, StoreContract.rows(table.scan(Range.all())).size());
            assertEquals(THREADS * each, table.get(bytes("all")).length);
        }
    }

    /** Writers give both tables and all rows of a batch the same number; no scan may see two. */
    @Test
    void scansNeverSeeHalfABatch() throws Exception {
        try (Store store = open("store")) {
            Table left = store.createTable("left");
            Table right = store.createTable("right");
            AtomicBoolean done = new AtomicBoolean();
            together(thread -> {
                if (thread < 2) {
                    for (int turn = 0; turn < 300; turn++) {
                        Batch batch = new Batch();
                        for (int row = 0; row < 20; row++) {
                            Table table = row % 2 == 0 ? left : right;
                            batch.put(table, wrap("row " + row), wrap(thread + "/" + turn));
                        }
                        store.write(batch, Durability.NONE);
                    }
                    done.set(true);
                    return;
                }
                do {
                    try (Snapshot snapshot = store.snapshot()) {
                        Set<String> seen = values(snapshot.scan(left, Range.all()));
                        seen.addAll(values(snapshot.scan(right, Range.all().backward())));
                        assertTrue(seen.size() <= 1, "half a batch: " + seen);
                    }
                    Set<String> seen = values(left.scan(Range.all()));
                    assertTrue(seen.size() <= 1, "half a batch: " + seen);
                } while (!done.get());
            });
        }
    }

    @Test
    void closingUnderOtherThreadsEndsTheirCallsAndNothingElse() throws Exception {
        for (int round = 0; round < 5; round++) {
            Store store = open("store");
            Table table = store.tableOrCreate("rows");
            AtomicBoolean started = new AtomicBoolean();
            together(thread -> {
                if (thread == 0) {
                    while (!started.get()) {
                        Thread.onSpinWait();
                    }
                    store.close();
                    return;
                }
                try {
                    for (int turn = 0; ; turn++) {
                        table.put(bytes(thread + "/" + turn % 50), new byte[100], Durability.NONE);
                        table.get(bytes("1/1"));
                        try (Snapshot snapshot = store.snapshot();
                                Rows rows = snapshot.scan(table, Range.all())) {
                            while (rows.next()) {
                                assertEquals(100, rows.value().remaining());
                            }
                        }
                        started.set(turn > 3);
                    }
                } catch (StoreException.Closed expected) {
                    started.set(true);
                }
            });
        }
    }

    /** A process of its own writes, says what was acknowledged, and is killed; nothing that it said may be missing. */
    @Test
    void acknowledgedWritesSurviveTheDeathOfTheProcess() throws Exception {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of("--add-opens=java.base/java.nio=ALL-UNNAMED", "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED"));
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), Writer.class.getName()));
        command.addAll(List.of(kind, directory.resolve("killed").toString()));
        parameters.forEach((name, value) -> command.add(name + "=" + value));
        Process process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        int acknowledged = 0;
        try (BufferedReader said = new BufferedReader(new InputStreamReader(process.getInputStream(), UTF_8))) {
            for (String line = said.readLine(); line != null; line = said.readLine()) {
                acknowledged = Integer.parseInt(line) + 1;
                if (acknowledged == 700) {
                    process.toHandle().destroyForcibly();
                }
            }
        } finally {
            process.destroyForcibly().waitFor();
        }
        assertTrue(acknowledged >= 700, "the writer ended on its own after " + acknowledged);
        try (Store store = open("killed")) {
            Table table = store.table("rows");
            for (int row = 0; row < acknowledged; row++) {
                assertEquals("value " + row, text(table.get(bytes("key " + row))));
            }
        }
    }

    /** The process that is killed. */
    static final class Writer {
        private Writer() {}

        public static void main(String[] arguments) {
            Map<String, String> parameters = new java.util.HashMap<>();
            for (String argument : List.of(arguments).subList(2, arguments.length)) {
                parameters.put(argument.split("=")[0], argument.split("=")[1]);
            }
            Store store = Stores.open(arguments[0], Path.of(arguments[1]), parameters);
            Table table = store.createTable("rows");
            for (int row = 0; ; row++) {
                table.put(bytes("key " + row), bytes("value " + row), Durability.values()[row % 3]);
                System.out.println(row);
            }
        }
    }

    private interface Work {
        void run(int thread) throws Exception;
    }

    private static void together(Work work) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        try {
            List<Callable<Void>> calls = new ArrayList<>();
            for (int thread = 0; thread < THREADS; thread++) {
                int number = thread;
                calls.add(() -> {
                    work.run(number);
                    return null;
                });
            }
            for (Future<Void> ended : threads.invokeAll(calls)) {
                ended.get();
            }
        } finally {
            threads.shutdownNow();
        }
    }

    private static Set<String> values(Rows rows) {
        Set<String> values = new HashSet<>();
        try (rows) {
            while (rows.next()) {
                values.add(UTF_8.decode(rows.value()).toString());
            }
        }
        return values;
    }
}

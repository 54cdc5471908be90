package io.aiodb.ycsb;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.store.StorageMode;
import io.aiodb.store.StoreException;
import io.aiodb.store.TableModes;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class ChangesTest {
    private static final String PROPERTY = "modes_at";
    private static final Path WORKLOADS = Path.of("..", "..", "workloads");

    @TempDir
    Path directory;

    private static Properties properties(String changes) {
        Properties properties = new Properties();
        properties.setProperty(PROPERTY, changes);
        return properties;
    }

    @Test
    void whatIsToBeDoneAtTheBeginningIsDoneBeforeItAndTheRestAtItsSeconds() throws Exception {
        List<String> made = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch all = new CountDownLatch(3);
        long began = System.nanoTime();
        Changes changes = Changes.begin(PROPERTY, properties("0:a,1:b,2:c:d,3600:never"), to -> {
            made.add(to);
            all.countDown();
        });
        assertEquals("a", made.get(0));
        assertTrue(all.await(1, TimeUnit.MINUTES));
        assertTrue(System.nanoTime() - began >= TimeUnit.SECONDS.toNanos(2), "no change comes before its second");
        changes.close();
        assertEquals(List.of("a", "b", "c:d"), made);
    }

    @Test
    void withoutThePropertyNothingIsDone() throws Exception {
        List<String> made = new ArrayList<>();
        Changes.begin(PROPERTY, new Properties(), made::add).close();
        assertEquals(List.of(), made);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "a", "1", "1:", ":a", "-1:a", "1.5:a", "1:a,", "1:a,1:b", "2:a,1:b", "12345678901234567890:a"})
    void whatIsNoListOfChangesIsRefused(String given) {
        assertThrows(IllegalArgumentException.class, () -> Changes.parse(PROPERTY, given));
    }

    @Test
    void modesAreKeysAndValues() {
        assertEquals(new TableModes(StorageMode.MEMORY, StorageMode.DISK), Modes.parse("memory/disk"));
        assertEquals(TableModes.AUTO, Modes.parse("auto/auto"));
        for (String wrong : List.of("", "memory", "memory/ram", "memory/disk/disk", "MEMORY/DISK", "/")) {
            assertThrows(StoreException.Configuration.class, () -> Modes.parse(wrong), wrong);
        }
    }

    @Test
    void aTableChangesItsModesWhileItIsRead() throws Exception {
        assertEquals(0, command("load", "aiodb").exitCode());
        Command run = command("run", "aiodb", "modes_at=0:memory/memory,1:memory/disk,2:disk/disk,900:auto/auto");
        assertEquals(0, run.exitCode(), run.output());
        assertTrue(run.figure("[READ], Return=OK") > 0);
        List<String> said = run.output().lines().filter(line -> line.startsWith("change: ")).toList();
        List<String> changes = said.stream().filter(line -> line.startsWith("change: is ")).toList();
        assertEquals(3, changes.size(), run.output());
        assertTrue(changes.get(0).matches("change: is memory/memory after [0-9]+[.][0-9]{3} ms"), changes.get(0));
        assertTrue(changes.get(1).startsWith("change: is memory/disk after"), changes.get(1));
        assertTrue(changes.get(2).startsWith("change: is disk/disk after"), changes.get(2));
        // All of them came into memory when they were written, and left it, or were never there, before the end.
        List<String> found = said.stream().filter(line -> line.startsWith("change: in memory ")).toList();
        assertEquals(3, found.size(), run.output());
        assertTrue(valuesInMemory(found.get(0)) > 0.9, found.get(0));
        assertTrue(said.get(said.size() - 1).startsWith("change: in memory "), "what is found at the end comes last");
        assertTrue(said.stream().noneMatch(line -> line.contains("auto/auto")), "a second that did not come");
    }

    private static double valuesInMemory(String line) {
        return Double.parseDouble(line.substring(line.indexOf("values ") + "values ".length()));
    }

    @ParameterizedTest
    @ValueSource(strings = {"0:disk/memory", "0:memory", "1:disk/memory"})
    void modesThatCannotBeFailTheRun(String changes) throws Exception {
        assertEquals(0, command("load", "aiodb").exitCode());
        Command run = command("run", "aiodb", "modes_at=" + changes);
        assertEquals(1, run.exitCode(), run.output());
        assertTrue(run.output().contains("ycsb: "), run.output());
    }

    @Test
    void aStoreWithoutModesFailsTheRun() throws Exception {
        assertEquals(0, command("load", "lmdb").exitCode());
        Command run = command("run", "lmdb", "modes_at=0:memory/memory");
        assertEquals(1, run.exitCode(), run.output());
        assertTrue(run.output().contains("has no storage modes"), run.output());
    }

    private Command command(String phase, String kind, String... more) throws Exception {
        List<String> line = new ArrayList<>(List.of(
                phase, kind, "-P", WORKLOADS.resolve("readonly").toString(), "-p", "store.directory=" + directory.resolve(kind),
                "-p", "store.durability=none", "-threads", "2"));
        if (phase.equals("run")) {
            line.addAll(List.of("-p", "operationcount=1000000000", "-p", "maxexecutiontime=4"));
        }
        for (String property : more) {
            line.addAll(List.of("-p", property));
        }
        return Command.run(line.toArray(String[]::new));
    }
}

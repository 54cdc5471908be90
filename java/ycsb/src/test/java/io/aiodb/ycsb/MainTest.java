package io.aiodb.ycsb;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.store.redis.RedisProcess;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class MainTest {
    private static final Path WORKLOADS = Path.of("..", "..", "workloads");

    @TempDir
    Path directory;

    @ParameterizedTest
    @ValueSource(strings = {"aiodb", "rocksdb", "lmdb"})
    void aWorkloadIsLoadedAndRunAndEveryRecordIsRight(String kind) throws Exception {
        String where = "store.directory=" + directory.resolve(kind);
        String workload = WORKLOADS.resolve("workloada").toString();
        // With this YCSB makes values that it can check when it reads them.
        String checked = "dataintegrity=true";
        Command load = Command.run(
                "load", kind, "-P", workload, "-p", where, "-p", checked, "-p", "fieldlengthdistribution=constant",
                "-p", "store.durability=none", "-threads", "2");
        assertEquals(0, load.exitCode(), load.output());
        assertEquals(1000, load.figure("[INSERT], Operations"));
        Command run = Command.run(
                "run", kind, "-P", workload, "-p", where, "-p", checked, "-p", "store.durability=none", "-threads", "4");
        assertEquals(0, run.exitCode(), run.output());
        assertEquals(1000, run.figure("[READ], Return=OK") + run.figure("[UPDATE], Return=OK"));
        assertEquals(run.figure("[READ], Return=OK"), run.figure("[VERIFY], Return=OK"));
    }

    @Test
    void aWorkloadIsRunOnAServerThatGivesTheDurabilityAskedFor(@TempDir Path files) throws Exception {
        try (RedisProcess redis = new RedisProcess(files, "--appendfsync", "everysec")) {
            List<String> given = List.of(
                    "store-redis", "-P", WORKLOADS.resolve("workloadf").toString(), "-p",
                    "store.directory=" + directory.resolve("store"), "-p", "store.port=" + redis.parameters().get("port"));
            Command refused = run("load", given, "sync");
            assertEquals(1, refused.exitCode(), refused.output());
            assertTrue(refused.output().contains("appendfsync"), refused.output());
            for (String phase : List.of("load", "run")) {
                Command command = run(phase, given, "interval");
                assertEquals(0, command.exitCode(), command.output());
            }
        }
    }

    private static Command run(String phase, List<String> given, String durability) throws Exception {
        List<String> line = new ArrayList<>(List.of(phase));
        line.addAll(given);
        line.addAll(List.of("-p", "store.durability=" + durability));
        return Command.run(line.toArray(String[]::new));
    }

    @Test
    void latenciesAndTimeSeriesAreYcsbsOwn() throws Exception {
        String where = "store.directory=" + directory.resolve("store");
        Path histogram = directory.resolve("latency-");
        Command load = Command.run(
                "load", "lmdb", "-P", WORKLOADS.resolve("sensor").toString(), "-p", where, "-p",
                "measurementtype=hdrhistogram", "-p", "hdrhistogram.fileoutput=true", "-p",
                "hdrhistogram.output.path=" + histogram, "-p", "measurement.interval=both", "-target", "2000");
        assertEquals(0, load.exitCode(), load.output());
        assertEquals(1000, load.figure("[Intended-INSERT], Operations"));
        assertTrue(Files.size(directory.resolve("latency-INSERT.hdr")) > 0);
        Command series = Command.run(
                "run", "lmdb", "-P", WORKLOADS.resolve("readonly").toString(), "-p", "fieldcount=1", "-p", "zeropadding=21",
                "-p", where, "-p", "measurementtype=timeseries", "-p", "timeseries.granularity=100");
        assertEquals(0, series.exitCode(), series.output());
        assertTrue(series.figure("[READ], 0") >= 0);
    }

    @Test
    void aStoreThatDoesNotOpenEndsTheRun() throws Exception {
        Path file = Files.writeString(directory.resolve("file"), "not a directory");
        Command load = Command.run("load", "aiodb", "-p", "recordcount=10", "-p", "store.directory=" + file, "-threads", "3");
        assertEquals(1, load.exitCode(), load.output());
        assertTrue(load.output().contains("cannot open the store"), load.output());
        assertFalse(load.output().contains("\tat "), load.output());
        assertFalse(load.output().contains("[OVERALL]"), load.output());
    }

    @Test
    void anUnknownParameterIsRefused() throws Exception {
        Command load = Command.run(
                "load", "rocksdb", "-p", "recordcount=10", "-p", "store.directory=" + directory, "-p", "store.cash_bytes=1");
        assertEquals(1, load.exitCode(), load.output());
        assertTrue(load.output().contains("cash_bytes"), load.output());
    }

    @Test
    void aWrongCommandSaysWhatIsRight() throws Exception {
        Command wrong = Command.run("load", "mongodb");
        assertEquals(2, wrong.exitCode(), wrong.output());
        assertTrue(wrong.output().startsWith("ycsb: there is no store `mongodb`"), wrong.output());
    }
}

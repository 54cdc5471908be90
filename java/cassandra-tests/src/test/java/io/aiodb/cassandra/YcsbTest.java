package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.CqlSession;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code bin/ycsb} over CQL. */
@ExtendWith(SharedNode.class)
@Tag("long")
final class YcsbTest {
    private static final int RECORDS = 200;

    /** What the command printed, and how it ended. */
    private record Ended(int exitCode, String output) {}

    private static Ended ycsb(Nodes nodes, String phase, String workload, String... properties) throws Exception {
        List<String> line = new ArrayList<>(List.of(
                Nodes.REPOSITORY.resolve("bin/ycsb").toString(), phase, "cql",
                "-P", Nodes.REPOSITORY.resolve("workloads").resolve(workload).toString(),
                "-p", "recordcount=" + RECORDS, "-p", "operationcount=" + RECORDS, "-p", "hosts=" + nodes.address(1),
                "-threads", "2"));
        for (String property : properties) {
            line.addAll(List.of("-p", property));
        }
        return end(new ProcessBuilder(line).redirectErrorStream(true).start());
    }

    private static Ended end(Process process) throws IOException, InterruptedException {
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return new Ended(process.waitFor(), output);
    }

    @ParameterizedTest
    @ValueSource(strings = {"aiodb", "skiplist"})
    void workloadsRun(String memtable, Nodes nodes) throws Exception {
        String[] properties = {
            "table=" + memtable, "cassandra.table_options=memtable = '" + memtable + "'", "dataintegrity=true",
            "fieldlengthdistribution=constant"
        };
        for (String[] step : new String[][] {{"load", "workloada"}, {"run", "workloada"}, {"run", "workloade"}}) {
            Ended ended = ycsb(nodes, step[0], step[1], properties);
            assertEquals(0, ended.exitCode(), ended.output());
            assertTrue(ended.output().contains("[OVERALL], Throughput"), ended.output());
            assertTrue(!ended.output().contains("Return=UNEXPECTED_STATE"), ended.output());
        }
        try (CqlSession session = nodes.session(1)) {
            long rows = session.execute("SELECT count(*) FROM ycsb." + memtable).one().getLong(0);
            assertTrue(rows >= RECORDS, rows + " rows");
            assertEquals(memtable, memtable(session, memtable));
        }
    }

    private static String memtable(CqlSession session, String table) {
        String statement = "SELECT memtable FROM system_schema.tables WHERE keyspace_name = 'ycsb' AND table_name = '" + table + "'";
        return session.execute(statement).one().getString(0);
    }

    @Test
    void theMemtableChangesWhileRecordsAreRead(Nodes nodes) throws Exception {
        String[] properties = {"table=changed", "cassandra.table_options=memtable = 'aiodb'"};
        assertEquals(0, ycsb(nodes, "load", "readonly", properties).exitCode());
        Ended ended = ycsb(
                nodes, "run", "readonly", "table=changed", "operationcount=1000000000", "maxexecutiontime=8",
                "cassandra.memtable_at=0:aiodb,2:skiplist");
        assertEquals(0, ended.exitCode(), ended.output());
        assertTrue(ended.output().contains("change: is skiplist after "), ended.output());
        assertTrue(!ended.output().contains("Return=NOT_FOUND"), ended.output());
        try (CqlSession session = nodes.session(1)) {
            assertEquals("skiplist", memtable(session, "changed"));
        }
    }

    @Test
    void aLevelThatCannotBeReachedFailsTheRun(Nodes nodes) throws Exception {
        Ended ended = ycsb(nodes, "load", "workloada", "table=three", "cassandra.writeconsistencylevel=THREE");
        assertEquals(1, ended.exitCode(), ended.output());
        assertTrue(ended.output().contains("what was measured does not count"), ended.output());
    }
}

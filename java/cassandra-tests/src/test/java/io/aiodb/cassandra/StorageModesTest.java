package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.servererrors.QueryValidationException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The modes of memtable configurations reach the tables of the store, without a row that moves. */
final class StorageModesTest {
    private static final int NETWORK = 87;
    private static final int ROWS = 300;
    private static final int ROW_BYTES = 500;

    /** Shares are estimates. */
    private static final double NEARLY_ALL = 0.99;

    private static final int LOOKS = 600;
    private static final int LOOK_MS = 100;

    private static final String TABLE = "org.apache.cassandra.metrics:type=Table,keyspace=modes,scope=rows,name=";
    private static final String METRICS = "org.apache.cassandra.metrics:type=AiodbMemtable,keyspace=modes,scope=rows,name=";

    /** All lie in the store of {@code aiodb}. The last two make no sense. */
    private static final String MEMTABLES = """
                hot:
                  inherits: aiodb
                  parameters:
                    values: memory
                cold:
                  inherits: aiodb
                  parameters:
                    keys: disk
                    values: disk
                contradiction:
                  inherits: aiodb
                  parameters:
                    keys: disk
                    values: memory
                unknown:
                  inherits: aiodb
                  parameters:
                    keys: ram
            """;

    @Test
    void aTableHasTheModesOfItsConfiguration() throws Exception {
        try (Nodes nodes = new Nodes(NETWORK, 1, "", Map.of("MEMTABLES", MEMTABLES))) {
            try (CqlSession session = nodes.session(1);
                    Management management = nodes.management(1)) {
                session.execute("CREATE KEYSPACE modes WITH replication = "
                        + "{'class': 'SimpleStrategy', 'replication_factor': 1}");
                session.execute("CREATE TABLE modes.rows (id int PRIMARY KEY, v text) WITH memtable = 'hot'");
                assertModes(management, "auto", "memory");
                fill(session, "first");
                assertModes(management, "auto", "memory");
                awaitRatio(management, "ValuesInMemoryRatio");
                check(session, "first");
                assertTrue((Long) management.attribute(METRICS + "ValueHits", "Value") >= ROWS, "reads found rows in memory");
                alterLive(nodes, session, management);
                assertRefused(session, management);
            }
            nodes.stop(1);
            Path settings = nodes.directory(1).resolve("cassandra.yaml");
            Files.writeString(settings, Files.readString(settings).replace("values: memory", "values: disk\n        keys: memory"));
            nodes.start(1);
            try (CqlSession session = nodes.session(1);
                    Management management = nodes.management(1)) {
                assertModes(management, "memory", "disk");
                check(session, "second");
                awaitRatio(management, "KeysInMemoryRatio");
                session.execute("TRUNCATE modes.rows");
                fill(session, "third");
                assertModes(management, "memory", "disk");
                check(session, "third");
            }
        }
    }

    /** The rows stay where they are, and statements that were prepared before go on. */
    private static void alterLive(Nodes nodes, CqlSession session, Management management) throws IOException {
        PreparedStatement select = session.prepare("SELECT v FROM modes.rows WHERE id = ?");
        long switched = management.count(TABLE + "MemtableSwitchCount");
        alter(session, "cold");
        assertModes(management, "disk", "disk");
        check(session, "first");
        alter(session, "aiodb");
        assertModes(management, "auto", "auto");
        fill(session, "second");
        alter(session, "hot");
        assertModes(management, "auto", "memory");
        check(session, "second");
        assertEquals(text("second", 1), session.execute(select.bind(1)).one().getString("v"));
        assertEquals(switched, management.count(TABLE + "MemtableSwitchCount"), "no memtable was switched out");
        assertEquals(0, sstables(nodes), "SSTables of the table");
    }

    private static void assertRefused(CqlSession session, Management management) {
        String contradiction = assertThrows(
                        QueryValidationException.class,
                        () -> session.execute(
                                "CREATE TABLE modes.none (id int PRIMARY KEY, v text) WITH memtable = 'contradiction'"))
                .getMessage();
        assertTrue(contradiction.contains("memtable: keys = disk: give memory or auto"), contradiction);
        String unknown = assertThrows(QueryValidationException.class, () -> alter(session, "unknown"))
                .getMessage();
        assertTrue(unknown.contains("memtable: keys = ram: give auto, memory or disk"), unknown);
        assertModes(management, "auto", "memory");
        check(session, "second");
    }

    private static void alter(CqlSession session, String memtable) {
        session.execute("ALTER TABLE modes.rows WITH memtable = '" + memtable + "'");
    }

    private static void assertModes(Management management, String keys, String values) {
        assertEquals(keys, management.attribute(METRICS + "KeysMode", "Value"));
        assertEquals(values, management.attribute(METRICS + "ValuesMode", "Value"));
    }

    private static void awaitRatio(Management management, String name) throws InterruptedException {
        double ratio = 0;
        for (int look = 0; look < LOOKS && ratio < NEARLY_ALL; look++) {
            ratio = (Double) management.attribute(METRICS + name, "Value");
            Thread.sleep(LOOK_MS);
        }
        assertTrue(ratio >= NEARLY_ALL, name + " is " + ratio);
    }

    private static void fill(CqlSession session, String text) {
        PreparedStatement insert = session.prepare("INSERT INTO modes.rows (id, v) VALUES (?, ?)");
        for (int row = 0; row < ROWS; row++) {
            session.execute(insert.bind(row, text(text, row)));
        }
    }

    private static void check(CqlSession session, String text) {
        for (int row = 0; row < ROWS; row++) {
            assertEquals(
                    text(text, row),
                    session.execute("SELECT v FROM modes.rows WHERE id = " + row).one().getString("v"));
        }
    }

    private static String text(String text, int row) {
        return (text + " " + row + " ").repeat(ROW_BYTES / text.length());
    }

    private static long sstables(Nodes nodes) throws IOException {
        try (Stream<Path> files = Files.walk(nodes.directory(1).resolve("data").resolve("modes"))) {
            return files.filter(file -> file.toString().endsWith("-Data.db")).count();
        }
    }
}

package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.DriverException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.jar.JarFile;
import java.util.zip.ZipEntry;
import java.util.UUID;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * A node is killed at each step that a change of a table takes, one after the other. When it starts again the table is as before
 * the change or as after it, and what the change had only begun is finished or undone.
 */
@Tag("long")
final class StepsTest {
    private static final int NETWORK = 97;
    private static final int PORT = 29_097;
    private static final int ROWS = 300;

    /** Before each of these, something else is on the disk: what the plug-in does with the store, and Cassandra between. */
    private static final Map<String, Set<String>> METHODS = Map.of(
            "io.aiodb.cassandra.table.WriteLogging", Set.of("changeSchema"),
            "io.aiodb.cassandra.AiodbMemtable", Set.of("getFlushSet", "performSnapshot"),
            "io.aiodb.cassandra.table.StoredTable", Set.of("remove"),
            "io.aiodb.cassandra.table.Catalog", Set.of("put", "change", "remove"),
            "io.aiodb.cassandra.lifecycle.AutoSnapshotWriter", Set.of("writeRows", "describe"),
            "org.apache.cassandra.db.ColumnFamilyStore",
                    Set.of("reload", "discardSSTables", "createSnapshot", "onTableDropped", "unloadCf"),
            "org.apache.cassandra.db.SystemKeyspace", Set.of("saveTruncationRecord"));

    /** A change, and a step that only its end has. */
    private enum Change {
        TRUNCATE("aiodb", "TRUNCATE rows", "Catalog.remove"),
        DROP("aiodb", "DROP TABLE rows", "Catalog.remove"),
        LEAVE("aiodb", "ALTER TABLE rows WITH memtable = 'trie'", "Catalog.remove"),
        COME("trie", "ALTER TABLE rows WITH memtable = 'aiodb'", "ColumnFamilyStore.reload"),
        SNAPSHOT("aiodb", null, "ColumnFamilyStore.createSnapshot");

        private final String memtable;

        /** Null where it is no statement. */
        private final String statement;

        private final String end;

        Change(String memtable, String statement, String end) {
            this.memtable = memtable;
            this.statement = statement;
            this.end = end;
        }
    }

    private static Nodes nodes;

    @BeforeAll
    static void create() {
        nodes = new Nodes(
                NETWORK, 1, "", Map.of("JVM_OPTIONS", "-XX:TieredStopAtLevel=1 " + Steps.options(PORT)));
    }

    @AfterAll
    static void destroy() {
        nodes.close();
    }

    /** Otherwise a class that moves would take its steps out of these tests, and nobody would see it. */
    @Test
    void everyMethodOfThePlugInIsThere() throws IOException {
        Path jar;
        try (DirectoryStream<Path> jars =
                Files.newDirectoryStream(Nodes.REPOSITORY.resolve("java/cassandra/target"), "aiodb-cassandra-*.jar")) {
            jar = jars.iterator().next();
        }
        try (JarFile classes = new JarFile(jar.toFile())) {
            for (String name : METHODS.keySet()) {
                if (!name.startsWith("io.aiodb.")) {
                    continue;
                }
                ZipEntry entry = classes.getEntry(name.replace('.', '/') + ".class");
                assertNotNull(entry, name);
                String bytes = new String(classes.getInputStream(entry).readAllBytes(), StandardCharsets.ISO_8859_1);
                for (String method : METHODS.get(name)) {
                    assertTrue(bytes.contains(method), name + "." + method);
                }
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void killedAtEachStep(Change change) throws IOException, InterruptedException {
        int last = 0;
        List<String> seen;
        do {
            last++;
            seen = killAt(change, last);
        } while (seen.size() >= last);
        assertTrue(seen.contains(change.end), change + " took other steps: " + seen);
        System.out.println("StepsTest: a kill at each step of " + change + ": " + seen);
    }

    /** Cassandra discards what it has flushed when the queries have ended that read it, however long they take. */
    @Test
    void truncatedWhileAQueryReadsWhatIsFlushed() throws InterruptedException {
        fill("read", "aiodb");
        try (CqlSession session = nodes.session(1, "read");
                CqlSession truncating = nodes.session(1, "read");
                Steps steps = new Steps(
                        PORT, Map.of("io.aiodb.cassandra.AiodbMemtable", Set.of("discard")), 1, () -> {
                            truncating.execute("TRUNCATE rows");
                            nodes.kill(1);
                        })) {
            session.execute("ALTER TABLE rows WITH memtable = 'trie'");
            assertTrue(steps.awaitEndOr("no other step"));
        }
        nodes.start(1);
        try (CqlSession session = nodes.session(1, "read")) {
            assertEquals(0, count(session));
        }
    }

    /** The commit log still has what was written before the table came, since other tables need it. */
    @Test
    void whatWasPurgedIsNotReplayed() throws InterruptedException {
        fill("replayed", "trie");
        try (CqlSession session = nodes.session(1, "replayed")) {
            session.execute("ALTER TABLE rows WITH memtable = 'aiodb' AND gc_grace_seconds = 0");
            nodes.nodetool(1, "compact", "replayed", "rows");
            for (int row = 0; row < ROWS; row += 2) {
                session.execute("DELETE FROM rows WHERE id = " + row);
            }
            assertEquals(ROWS / 2, count(session));
            // Until the deletions are older than no time at all.
            Thread.sleep(2000);
            nodes.nodetool(1, "compact", "replayed", "rows");
            nodes.kill(1);
        }
        nodes.start(1);
        try (CqlSession session = nodes.session(1, "replayed")) {
            assertEquals(ROWS / 2, count(session));
        }
    }

    /** Gives the steps that were begun: as many as the last says, unless there are fewer. */
    private static List<String> killAt(Change change, int last) throws IOException, InterruptedException {
        String keyspace = change.name().toLowerCase() + "_" + last;
        UUID id = fill(keyspace, change.memtable);
        List<String> seen;
        boolean acknowledged;
        try (CqlSession session = nodes.session(1, keyspace);
                Steps steps = new Steps(PORT, METHODS, last, () -> nodes.kill(1))) {
            acknowledged = change(session, keyspace, change, steps);
            boolean ended = steps.awaitEndOr(change.end);
            seen = steps.seen();
            if (!ended) {
                return seen;
            }
        }
        String when = change + " was killed after " + seen;
        try {
            nodes.start(1);
            check(keyspace, change, acknowledged, id);
        } catch (AssertionError | RuntimeException failure) {
            throw new AssertionError(when, failure);
        }
        return seen;
    }

    /** The id of the table. */
    private static UUID fill(String keyspace, String memtable) {
        try (CqlSession session = nodes.session(1)) {
            session.execute("CREATE KEYSPACE " + keyspace
                    + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
            session.execute("CREATE TABLE " + keyspace + ".rows (id int PRIMARY KEY, v text) WITH memtable = '" + memtable + "'");
            for (int row = 0; row < ROWS; row++) {
                session.execute("INSERT INTO " + keyspace + ".rows (id, v) VALUES (" + row + ", 'v')");
            }
            return session.execute("SELECT id FROM system_schema.tables WHERE keyspace_name = '" + keyspace
                            + "' AND table_name = 'rows'")
                    .one()
                    .getUuid(0);
        }
    }

    /** Whether the node has said that it is done. */
    private static boolean change(CqlSession session, String keyspace, Change change, Steps steps)
            throws InterruptedException {
        try {
            if (change.statement != null) {
                session.execute(change.statement);
            } else {
                nodes.nodetool(1, "snapshot", "--tag", "begun", keyspace);
            }
            return true;
        } catch (DriverException | AssertionError failure) {
            if (!steps.awaitEndOr(change.end)) {
                throw failure;
            }
            return false;
        }
    }

    private static void check(String keyspace, Change change, boolean acknowledged, UUID id)
            throws IOException, InterruptedException {
        try (CqlSession session = nodes.session(1, keyspace)) {
            switch (change) {
                case TRUNCATE -> {
                    int found = count(session);
                    assertTrue(found == 0 || found == ROWS && !acknowledged, found + " rows are left");
                    if (found == 0) {
                        SnapshotTest.automatic(nodes, keyspace, "truncated-");
                    }
                }
                case DROP -> checkDrop(session, keyspace, acknowledged, id);
                case LEAVE, COME -> {
                    assertEquals(ROWS, count(session));
                    session.execute("ALTER TABLE rows WITH memtable = 'aiodb'");
                    assertEquals(ROWS, count(session));
                }
                case SNAPSHOT -> {
                    assertEquals(ROWS, count(session));
                    nodes.nodetool(1, "snapshot", "--tag", "again", keyspace);
                    assertTrue(nodes.nodetool(1, "listsnapshots").contains("again"));
                }
            }
            session.execute("INSERT INTO " + keyspace + ".rows (id, v) VALUES (-1, 'new')");
            assertEquals(1, session.execute("SELECT v FROM rows WHERE id = -1").all().size());
        }
    }

    private static void checkDrop(CqlSession session, String keyspace, boolean acknowledged, UUID id)
            throws IOException, InterruptedException {
        boolean dropped = !isThere(session, keyspace);
        assertTrue(dropped || !acknowledged, "the table is there");
        if (dropped) {
            // A kill before the rows were set aside leaves them where the table finds them again.
            session.execute("CREATE TABLE rows (id int PRIMARY KEY, v text) WITH id = " + id + " AND memtable = 'aiodb'");
        }
        int found = count(session);
        assertTrue(found == ROWS || found == 0 && dropped, found + " rows are left");
        if (found == 0) {
            SnapshotTest.automatic(nodes, keyspace, "dropped-");
        }
    }

    private static boolean isThere(CqlSession session, String keyspace) {
        return session.execute("SELECT id FROM system_schema.tables WHERE keyspace_name = '" + keyspace
                                + "' AND table_name = 'rows'")
                        .one()
                != null;
    }

    private static int count(CqlSession session) {
        return session.execute("SELECT id FROM rows").all().size();
    }
}

package io.aiodb.store.aiodb;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.store.StoreException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Errors where the native library cannot be loaded, and where it is called with nonsense. */
class NativeLibraryTest {
    @TempDir
    Path directory;

    @BeforeAll
    static void load() {
        NativeLibrary.load();
    }

    @Test
    void theCopyIsForThisUserAlone() throws Exception {
        String here = NativeLibrary.platform(System.getProperty("os.name"), System.getProperty("os.arch"));
        Path copy = NativeLibrary.copy(here, directory);
        assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(copy)));
    }

    @Test
    void aPlatformWithoutALibraryIsNamed() {
        assertEquals("linux-aarch64", NativeLibrary.platform("Linux", "arm64"));
        StoreException failure = assertThrows(
                StoreException.NativeLibrary.class,
                () -> NativeLibrary.copy(NativeLibrary.platform("Linux", "s390x"), directory));
        assertTrue(failure.getMessage().contains("linux-s390x"), failure.getMessage());
        assertTrue(failure.getMessage().contains("make java"), failure.getMessage());
    }

    @Test
    void aDirectoryThatCannotBeWrittenIsNamed() {
        String here = NativeLibrary.platform(System.getProperty("os.name"), System.getProperty("os.arch"));
        Path missing = directory.resolve("missing");
        StoreException failure =
                assertThrows(StoreException.NativeLibrary.class, () -> NativeLibrary.copy(here, missing));
        assertTrue(failure.getMessage().contains(missing.toString()), failure.getMessage());
    }

    @Test
    void aFileThatIsNoLibraryIsNamedWithTheMachine() throws Exception {
        Path file = Files.writeString(directory.resolve("lib.so"), "not a library");
        StoreException failure = assertThrows(
                StoreException.NativeLibrary.class, () -> NativeLibrary.loadFile(file, "from a test"));
        assertTrue(failure.getMessage().contains(file.toString()), failure.getMessage());
        assertTrue(failure.getMessage().contains(System.getProperty("os.arch")), failure.getMessage());
    }

    /** Handles that never were any, buffers of the wrong kind, lengths beyond their buffers: exceptions, no crash. */
    @Test
    void nonsenseIsRefusedByTheNativeSide() {
        ByteBuffer direct = Buffers.direct(16);
        for (long never : new long[] {0, -1, 1L << 40, Long.MAX_VALUE, Long.MIN_VALUE}) {
            assertThrows(StoreException.Closed.class, () -> Native.sync(never));
            assertThrows(StoreException.Closed.class, () -> Native.next(never, never, direct));
            assertThrows(StoreException.Closed.class, () -> Native.getArray(never, never, never, direct, 4));
            Native.closeScan(never, never);
            Native.closeSnapshot(never, never);
            Native.close(never);
        }
        String path = directory.resolve("store").toString();
        long store = Native.open(
                new String[] {path}, 0, 1000, -1, 1, 0, false, -1, 4 << 20, 0, "none", "lmdb", 0, "none");
        long table = Native.createTable(store, "t", false, "auto", "auto");
        ByteBuffer heap = ByteBuffer.allocate(16);
        assertDefect(() -> Native.getArray(store, table, 0, heap, 4));
        assertDefect(() -> Native.getArray(store, table, 0, null, 4));
        assertDefect(() -> Native.getArray(store, table, 0, direct, 17));
        assertDefect(() -> Native.getArray(store, table, 0, direct, -1));
        assertDefect(() -> Native.get(store, table, 0, direct, 4, direct, 12, 5));
        assertDefect(() -> Native.get(store, table, 0, direct, 4, direct, Integer.MAX_VALUE, Integer.MAX_VALUE));
        assertDefect(() -> Native.write(store, direct, 16, new long[] {table}, 0, 0));
        assertDefect(() -> Native.write(store, direct, 16, null, 0, 0));
        assertDefect(() -> Native.write(store, direct, 0, new long[] {table}, 7, 0));
        assertDefect(() -> Native.scan(store, table, 0, direct, 10, 10, 0, 1));
        assertDefect(() -> Native.scan(store, table, 0, direct, 1, 1, 0, -1));
        assertDefect(() -> Native.table(store, null));
        assertDefect(() -> Native.createTable(store, "u", false, "auto", null));
        assertDefect(() -> Native.setTableModes(store, table, "ram", "auto"));
        assertThrows(
                StoreException.NoSuchTable.class, () -> Native.setTableModes(store, table + 1, "memory", "auto"));
        assertThrows(StoreException.NoSuchTable.class, () -> Native.tableStatistics(store, table + 1));
        assertThrows(StoreException.NoSuchTable.class, () -> Native.estimatedRows(store, table + 1));
        assertThrows(StoreException.Closed.class, () -> Native.getArray(store, table, 99, direct, 4));
        Native.close(store);
        assertThrows(StoreException.Closed.class, () -> Native.getArray(store, table, 0, direct, 4));
    }

    private static void assertDefect(Runnable call) {
        assertThrows(StoreException.Defect.class, call::run);
    }
}

package io.aiodb.cassandra.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.aiodb.cassandra.fixture.OneStoredTable;
import io.aiodb.store.StoreException;
import org.apache.cassandra.io.FSReadError;
import org.apache.cassandra.io.FSWriteError;
import org.apache.cassandra.io.sstable.CorruptSSTableException;
import org.junit.jupiter.api.Test;

/** {@code disk_failure_policy} acts on these classes of Cassandra's. */
class DiskErrorsTest extends OneStoredTable {
    @Test
    void whatFailsOnTheDiskIsCassandrasError() {
        StoreException failure = new StoreException.Failed("pread: Input/output error");
        FSReadError read = assertThrows(FSReadError.class, () -> DiskErrors.ofRead(failure, store.open()));
        FSWriteError write = assertThrows(FSWriteError.class, () -> DiskErrors.ofWrite(failure, store.open()));
        assertSame(failure, read.getCause());
        assertSame(failure, write.getCause());
        assertEquals(store.open().directory().toString(), read.path);
    }

    @Test
    void damageIsCassandrasCorruption() {
        StoreException damage = new StoreException.Corruption("a record does not check out");
        RuntimeException error = DiskErrors.ofRead(damage, store.open());
        assertEquals(CorruptSSTableException.class, error.getClass());
        assertSame(damage, error.getCause());
    }

    @Test
    void readsThatOthersWouldFollowAreCounted() {
        long before = store.open().failedReads();
        StoreException down = new StoreException.Unavailable("the server does not answer");
        RuntimeException error = DiskErrors.ofRead(down, store.open());
        assertEquals(ServerAwayException.class, error.getClass());
        assertEquals(down.getMessage(), error.getMessage());
        assertEquals(before + 1, store.open().failedReads());
        DiskErrors.ofRead(new StoreException.Corruption("a record does not check out"), store.open());
        DiskErrors.ofWrite(down, store.open());
        assertEquals(before + 1, store.open().failedReads());
        StoreException failure = new StoreException.Failed("pread: Input/output error");
        assertThrows(FSReadError.class, () -> DiskErrors.ofRead(failure, store.open()));
        assertEquals(before + 2, store.open().failedReads());
    }

    @Test
    void aFullStoreIsNoFailureOfTheDisk() {
        StoreException full = new StoreException.Full("no space");
        assertSame(full, DiskErrors.ofWrite(full, store.open()));
    }
}

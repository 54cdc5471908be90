package io.aiodb.cassandra.lifecycle;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ch.qos.logback.classic.spi.ILoggingEvent;
import io.aiodb.cassandra.fixture.LogOf;
import io.aiodb.cassandra.fixture.OneStoredTable;
import io.aiodb.cassandra.fixture.Schema;
import io.aiodb.cassandra.read.PartitionReader;
import io.aiodb.cassandra.table.Catalog;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.cassandra.write.UpdateWriter;
import io.aiodb.store.Durability;
import io.aiodb.store.StorageMode;
import io.aiodb.store.TableModes;
import java.util.List;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.service.ClientWarn;
import org.junit.jupiter.api.Test;

/** What the store knows of the modes that a table's memtable configuration has. */
class StoredTableModesTest extends OneStoredTable {
    private static final TableModes HOT = new TableModes(StorageMode.AUTO, StorageMode.MEMORY);
    private static final TableModes COLD = new TableModes(StorageMode.DISK, StorageMode.DISK);
    private static final TableModes CONTRADICTION = new TableModes(StorageMode.DISK, StorageMode.MEMORY);

    @Test
    void aTableHasItsModesFromItsFirstWriteOn() {
        storedTable.setModes(HOT, table);
        assertNull(storedTable.tableOrNull(), "it stays empty");
        assertTrue(store.open().statistics(table.id).isEmpty());
        write(storedTable, 1);
        assertEquals(HOT, stored());
        assertEquals(TableModes.AUTO, store.open().store().table("catalog").statistics().modes());
    }

    @Test
    void aTableThatIsUsedGetsOthersAndStaysWhereItIs() {
        write(storedTable, 1);
        assertEquals(TableModes.AUTO, stored());
        List<String> before = store.open().store().tableNames();
        storedTable.setModes(COLD, table);
        assertEquals(COLD, stored());
        write(storedTable, 2);
        storedTable.setModes(HOT, table);
        assertEquals(HOT, stored());
        assertEquals(before, store.open().store().tableNames());
        assertTrue(PartitionReader.exists(storedTable, Schema.key(1)));
        assertTrue(PartitionReader.exists(storedTable, Schema.key(2)));
    }

    @Test
    void afterARestartItHasWhatItsConfigurationSays() {
        storedTable.setModes(HOT, table);
        write(storedTable, 1);
        restart();
        assertEquals(HOT, stored());
        storedTable.setModes(COLD, table);
        assertEquals(COLD, stored(), "as after a change of cassandra.yaml");
        assertTrue(PartitionReader.exists(storedTable, Schema.key(1)));
    }

    @Test
    void rowsOfAfterATruncateHaveThemToo() {
        storedTable.setModes(HOT, table);
        write(storedTable, 1);
        StoredTable next = StoredTables.attach(store.open(), table.id);
        next.setModes(HOT, table);
        storedTable.mark(Catalog.State.CLEARED);
        write(next, 2);
        assertEquals(HOT, stored());
        assertFalse(PartitionReader.exists(next, Schema.key(1)));
    }

    @Test
    void whatTheStoreRefusesIsToldAndNoWriteFails() {
        ClientWarn.instance.captureWarnings();
        storedTable.setModes(CONTRADICTION, table);
        List<ILoggingEvent> log = LogOf.during("io.aiodb.cassandra.table", () -> write(storedTable, 1));
        String said = log.get(0).getFormattedMessage();
        assertTrue(said.startsWith("k.t keeps") && said.contains("keys: disk, values: memory"), said);
        assertEquals(List.of(said), ClientWarn.instance.getWarnings());
        ClientWarn.instance.resetWarnings();
        assertEquals(TableModes.AUTO, stored());
        assertTrue(PartitionReader.exists(storedTable, Schema.key(1)));
        storedTable.setModes(HOT, table);
        assertEquals(HOT, stored());
    }

    /** What the table of the store has. */
    private TableModes stored() {
        return store.open().statistics(table.id).orElseThrow().modes();
    }

    private void write(StoredTable written, int key) {
        PartitionUpdate.SimpleBuilder update =
                PartitionUpdate.simpleBuilder(table, Int32Type.instance.compose(Schema.key(key).getKey()));
        update.timestamp(1).row("a", 1).add("v", "value");
        UpdateWriter.write(update.build(), written, Durability.INTERVAL);
    }
}

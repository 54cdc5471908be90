package io.aiodb.cassandra.read;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.aiodb.cassandra.fixture.OneStoredTable;
import io.aiodb.cassandra.fixture.Schema;
import io.aiodb.cassandra.write.UpdateWriter;
import io.aiodb.store.Durability;
import java.util.ArrayList;
import java.util.List;
import java.util.NavigableSet;
import java.util.TreeSet;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.DataRange;
import org.apache.cassandra.db.filter.ClusteringIndexNamesFilter;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.db.marshal.UTF8Type;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.Unfiltered;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.schema.TableMetadata;
import org.junit.jupiter.api.Test;

class PartitionScanTest extends OneStoredTable {
    private static final TableMetadata KEYS = TableMetadata.builder("k", "keys", Schema.ID)
            .partitioner(Murmur3Partitioner.instance)
            .addPartitionKeyColumn("p", Int32Type.instance)
            .addRegularColumn("v", UTF8Type.instance)
            .build();

    PartitionScanTest() {
        super(Schema.flat().build());
    }

    private void write(TableMetadata metadata, int key, Object... clustering) {
        PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(metadata, key).timestamp(1);
        update.row(clustering).add("v", "x");
        UpdateWriter.write(update.build(), storedTable, Durability.INTERVAL);
    }

    private List<String> scan(TableMetadata metadata, NavigableSet<Clustering<?>> names) {
        DataRange range = new DataRange(
                DataRange.allData(Murmur3Partitioner.instance).keyRange(), new ClusteringIndexNamesFilter(names, false));
        List<String> found = new ArrayList<>();
        try (PartitionScan scan = new PartitionScan(storedTable, metadata, ColumnFilter.all(metadata), range)) {
            while (scan.hasNext()) {
                try (UnfilteredRowIterator rows = scan.next()) {
                    while (rows.hasNext()) {
                        Unfiltered row = rows.next();
                        found.add(Int32Type.instance.compose(rows.partitionKey().getKey())
                                + row.clustering().toString(metadata));
                    }
                }
            }
        }
        found.sort(null);
        return found;
    }

    /** As the first partition of a page is asked for when the page before ended with the last of the names. */
    @Test
    void noNamesAreNoRows() {
        for (int key = 1; key <= 3; key++) {
            write(table, key, "one");
            write(table, key, "two");
        }
        NavigableSet<Clustering<?>> names = new TreeSet<>(table.comparator);
        assertEquals(List.of(), scan(table, names));
        names.add(Clustering.make(Schema.text("two")));
        assertEquals(List.of("1a=two", "2a=two", "3a=two"), scan(table, names));
    }

    @Test
    void theOnlyRowHasNoName() {
        for (int key = 1; key <= 3; key++) {
            write(KEYS, key);
        }
        NavigableSet<Clustering<?>> names = new TreeSet<>(KEYS.comparator);
        assertEquals(List.of(), scan(KEYS, names));
        names.add(Clustering.EMPTY);
        assertEquals(3, scan(KEYS, names).size());
    }
}

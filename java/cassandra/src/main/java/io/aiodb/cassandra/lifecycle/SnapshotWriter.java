package io.aiodb.cassandra.lifecycle;

import java.util.Collections;
import org.apache.cassandra.db.SerializationHeader;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.SSTable;
import org.apache.cassandra.io.sstable.SSTableTxnWriter;
import org.apache.cassandra.schema.TableMetadataRef;
import org.apache.cassandra.service.ActiveRepairService;

/**
 * Writes the rows of a stored table into a snapshot of its table: as SSTables, which any Cassandra can be given back, with
 * this memtable or another. It takes a time in proportion to the rows.
 */
public final class SnapshotWriter {
    private SnapshotWriter() {}

    /**
     * Writes the rows of now, whole or not at all.
     *
     * @param descriptor of an SSTable in the directory of the snapshot
     * @param owner the table; null if it is not there any more
     * @return whether there was anything
     */
    public static boolean write(TableMetadataRef table, Descriptor descriptor, FlushSet rows, SSTable.Owner owner) {
        if (rows.partitionCount() == 0) {
            return false;
        }
        SerializationHeader header =
                new SerializationHeader(true, rows.metadata(), rows.columns(), rows.encodingStats());
        try (SSTableTxnWriter writer = SSTableTxnWriter.create(
                table,
                descriptor,
                rows.partitionCount(),
                ActiveRepairService.UNREPAIRED_SSTABLE,
                ActiveRepairService.NO_PENDING_REPAIR,
                false,
                header,
                Collections.emptyList(),
                owner)) {
            try (FlushSet.Partitions partitions = rows.partitions()) {
                while (partitions.hasNext()) {
                    try (var streamed = partitions.next().unfilteredIterator()) {
                        writer.append(streamed);
                    }
                }
            }
            writer.finish(false);
        }
        return true;
    }
}

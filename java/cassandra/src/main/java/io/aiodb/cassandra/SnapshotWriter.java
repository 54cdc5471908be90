package io.aiodb.cassandra;

import java.util.Collections;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Directories;
import org.apache.cassandra.db.SerializationHeader;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.SSTableTxnWriter;
import org.apache.cassandra.io.util.File;
import org.apache.cassandra.service.ActiveRepairService;

/**
 * Writes the rows of a generation into a snapshot of its table: as SSTables, which any Cassandra can be given back, with this
 * memtable or another. It takes a time in proportion to the rows.
 */
final class SnapshotWriter {
    private SnapshotWriter() {}

    /** Writes what there is now into the directory of a snapshot, whole or not at all. */
    static void write(ColumnFamilyStore cfs, FlushSet rows, String snapshot) {
        if (rows.partitionCount() == 0) {
            return;
        }
        File directory =
                Directories.getSnapshotDirectory(cfs.getDirectories().getDirectoryForNewSSTables(), snapshot);
        Descriptor descriptor = cfs.newSSTableDescriptor(directory);
        SerializationHeader header =
                new SerializationHeader(true, rows.metadata(), rows.columns(), rows.encodingStats());
        try (SSTableTxnWriter writer = SSTableTxnWriter.create(
                cfs.metadata,
                descriptor,
                rows.partitionCount(),
                ActiveRepairService.UNREPAIRED_SSTABLE,
                ActiveRepairService.NO_PENDING_REPAIR,
                false,
                header,
                Collections.emptyList(),
                cfs)) {
            for (FlushSet.Streamed partition : rows) {
                try (var streamed = partition.unfilteredIterator()) {
                    writer.append(streamed);
                }
            }
            writer.finish(false);
        }
    }
}

package io.aiodb.cassandra.lifecycle;

import io.aiodb.cassandra.format.AutoSnapshot;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.cassandra.write.LargeUpdate;
import io.aiodb.store.StoreException;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.cassandra.concurrent.NamedThreadFactory;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Directories;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.SchemaCQLHelper;
import org.apache.cassandra.db.commitlog.CommitLogPosition;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.SSTableIdFactory;
import org.apache.cassandra.io.sstable.format.SSTableFormat;
import org.apache.cassandra.io.util.File;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.TableMetadataRef;
import org.apache.cassandra.service.StorageService;
import org.apache.cassandra.service.snapshot.SnapshotManifest;
import org.apache.cassandra.service.snapshot.TableSnapshot;
import org.apache.cassandra.utils.FBUtilities;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The automatic snapshots of tables that are truncated or dropped. A truncate or drop only says in the catalog that the rows
 * are to be kept, which takes the same time for any number of them; then they are written to SSTables in the background, and
 * leave the store. A node that ends meanwhile begins anew when it starts.
 */
public final class AutoSnapshotWriter {
    private static final Logger LOGGER = LoggerFactory.getLogger(AutoSnapshotWriter.class);
    private static final int IDLE_SECONDS = 10;

    /** Another name than Cassandra's for its own snapshot of the same moment, which is not to be begun anew. */
    private static final String SUFFIX = "-aiodb";

    /** One after the other. The queue is as long as there are stored tables to be kept. */
    private static final ThreadPoolExecutor THREAD = new ThreadPoolExecutor(
            1,
            1,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            new NamedThreadFactory("aiodb-snapshots"));

    static {
        THREAD.allowCoreThreadTimeOut(true);
    }

    private AutoSnapshotWriter() {}

    /** The snapshot of a table as it is now; the prefix says, as Cassandra's does, why it is taken. */
    public static AutoSnapshot plan(ColumnFamilyStore cfs, String prefix) {
        TableMetadata metadata = cfs.metadata();
        String schema = SchemaCQLHelper.reCreateStatementsForSchemaCql(metadata, cfs.keyspace.getMetadata())
                .collect(Collectors.joining("\n", "", "\n"));
        return new AutoSnapshot(
                Keyspace.getTimestampedSnapshotNameWithPrefix(metadata.name + SUFFIX, prefix), schema, metadata);
    }

    /**
     * Writes a stored table that is marked as kept to its snapshot, and removes it, when the snapshots before it are done. Where that
     * fails, it stays for the next start of the node, unless that would not know of the snapshot.
     */
    public static void write(StoredTable storedTable) {
        THREAD.execute(() -> {
            try {
                writeNow(storedTable);
            } catch (StoreException.Closed over) {
                LOGGER.info(
                        storedTable.isKeptUnrecorded()
                                ? "There is no snapshot of the table {}: the node ends before it is written"
                                : "The snapshot of the table {} is written when the node starts again",
                        storedTable.id());
            } catch (Throwable failure) {
                if (storedTable.isKeptUnrecorded()) {
                    LOGGER.error("There is no snapshot of what was truncated or dropped of the table {}", storedTable.id(), failure);
                    StoredTables.remove(storedTable);
                    return;
                }
                LOGGER.error(
                        "The snapshot of what was truncated or dropped of the table {} is not written; it is tried again when"
                                + " the node starts",
                        storedTable.id(),
                        failure);
            }
        });
    }

    private static void writeNow(StoredTable storedTable) throws IOException {
        long began = System.nanoTime();
        AutoSnapshot kept = storedTable.kept();
        Directories directories = new Directories(kept.metadata());
        // Of an attempt before, which may have ended anywhere.
        Directories.clearSnapshot(
                kept.snapshot(), directories.getCFDirectories(), DatabaseDescriptor.getSnapshotRateLimiter());
        File directory =
                Directories.getSnapshotDirectory(directories.getDirectoryForNewSSTables(), kept.snapshot());
        Files.writeString(Directories.getSnapshotSchemaFile(directory).toPath(), kept.schema());
        List<String> files = new ArrayList<>();
        LargeUpdate.forEachUnfinished(
                storedTable, rest -> files.addAll(writeRows(kept, rest, directories, directory)));
        files.addAll(writeRows(kept, storedTable, directories, directory));
        describe(kept, files, directory);
        // The rows leave the store now: from here on a power cut must not take the snapshot.
        flush(directory);
        StoredTables.remove(storedTable);
        LOGGER.info(
                "Wrote what there was of {} to the snapshot {} in {} ms",
                kept.metadata(),
                kept.snapshot(),
                (System.nanoTime() - began) / 1_000_000);
    }

    /** The names of the files that the manifest of the snapshot is to list. */
    private static List<String> writeRows(
            AutoSnapshot kept, StoredTable storedTable, Directories directories, File directory) {
        TableMetadata table = kept.metadata();
        Descriptor descriptor = new Descriptor(
                DatabaseDescriptor.getSelectedSSTableFormat().getLatestVersion(),
                directory,
                table.keyspace,
                table.name,
                directories.getUIDGenerator(SSTableIdFactory.instance.defaultBuilder()).get());
        FlushSet rows = new FlushSet(
                null, table, storedTable, null, null, CommitLogPosition.NONE, CommitLogPosition.NONE);
        boolean any = SnapshotWriter.write(TableMetadataRef.forOfflineTools(table), descriptor, rows, null);
        return any ? List.of(descriptor.relativeFilenameFor(SSTableFormat.Components.DATA)) : List.of();
    }

    /**
     * Makes the files of a snapshot durable, with the names of all that may have been made for it: Cassandra leaves some to the
     * system.
     */
    private static void flush(File directory) throws IOException {
        for (File file : directory.tryList(File::isFile)) {
            force(file.toPath());
        }
        Path snapshots = directory.toPath().getParent();
        for (Path made : List.of(directory.toPath(), snapshots, snapshots.getParent())) {
            force(made);
        }
    }

    private static void force(Path path) throws IOException {
        try (FileChannel channel = FileChannel.open(path)) {
            channel.force(true);
        }
    }

    /** Says that the snapshot is whole, and has Cassandra delete it when its time is over, if it has one. */
    private static void describe(AutoSnapshot kept, List<String> files, File directory) throws IOException {
        SnapshotManifest manifest =
                new SnapshotManifest(files, DatabaseDescriptor.getAutoSnapshotTtl(), FBUtilities.now(), false);
        manifest.serializeToJsonFile(Directories.getSnapshotManifestFile(directory));
        TableMetadata table = kept.metadata();
        StorageService.instance.addSnapshot(new TableSnapshot(
                table.keyspace,
                table.name,
                table.id.asUUID(),
                kept.snapshot(),
                manifest.createdAt,
                manifest.expiresAt,
                Set.of(directory),
                false));
    }
}

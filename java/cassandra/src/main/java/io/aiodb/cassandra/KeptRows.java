package io.aiodb.cassandra;

import io.aiodb.store.StoreException;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.cassandra.concurrent.NamedThreadFactory;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.Directories;
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
 * The automatic snapshots of what is truncated or dropped. A truncate or drop only says in the catalog that the rows are to be
 * kept, which takes the same time for any number of them; then they are written to SSTables in the background, and leave the
 * store. A node that ends meanwhile begins anew when it starts.
 */
final class KeptRows {
    private static final Logger LOGGER = LoggerFactory.getLogger(KeptRows.class);
    private static final int IDLE_SECONDS = 10;

    /** One after the other. The queue is as long as there are generations to be kept. */
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

    private KeptRows() {}

    /** Writes a generation that is marked as kept to its snapshot, and removes it, when those before are done. */
    static void write(Generation generation) {
        THREAD.execute(() -> {
            try {
                writeNow(generation);
            } catch (StoreException.Closed over) {
                LOGGER.info("The snapshot of the table {} is written when the node starts again", generation.id());
            } catch (Throwable failure) {
                LOGGER.error(
                        "The snapshot of what was truncated or dropped of the table {} is not written; it is tried again when"
                                + " the node starts",
                        generation.id(),
                        failure);
            }
        });
    }

    private static void writeNow(Generation generation) throws IOException {
        long began = System.nanoTime();
        KeptTable kept = generation.kept();
        Directories directories = new Directories(kept.metadata());
        // Of an attempt before, which may have ended anywhere.
        Directories.clearSnapshot(
                kept.snapshot(), directories.getCFDirectories(), DatabaseDescriptor.getSnapshotRateLimiter());
        File directory =
                Directories.getSnapshotDirectory(directories.getDirectoryForNewSSTables(), kept.snapshot());
        Files.writeString(Directories.getSnapshotSchemaFile(directory).toPath(), kept.schema());
        List<String> files = writeRows(kept, generation, directories, directory);
        describe(kept, files, directory);
        // The rows leave the store now: from here on a power cut must not take the snapshot.
        flush(directory);
        generation.remove();
        LOGGER.info(
                "Wrote what there was of {} to the snapshot {} in {} ms",
                kept.metadata(),
                kept.snapshot(),
                (System.nanoTime() - began) / 1_000_000);
    }

    /** The names of the files that the manifest of the snapshot is to list. */
    private static List<String> writeRows(
            KeptTable kept, Generation generation, Directories directories, File directory) {
        TableMetadata table = kept.metadata();
        Descriptor descriptor = new Descriptor(
                DatabaseDescriptor.getSelectedSSTableFormat().getLatestVersion(),
                directory,
                table.keyspace,
                table.name,
                directories.getUIDGenerator(SSTableIdFactory.instance.defaultBuilder()).get());
        FlushSet rows = new FlushSet(
                null, table, generation, null, null, CommitLogPosition.NONE, CommitLogPosition.NONE);
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
    private static void describe(KeptTable kept, List<String> files, File directory) throws IOException {
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

package io.aiodb.cassandra.bench;

import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.ColumnFamilyStore.FlushReason;
import org.apache.cassandra.db.DataRange;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.LivenessInfo;
import org.apache.cassandra.db.PartitionPosition;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.commitlog.CommitLogPosition;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.db.memtable.AbstractMemtableWithCommitlog;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.db.partitions.AbstractUnfilteredPartitionIterator;
import org.apache.cassandra.db.partitions.Partition;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.partitions.UnfilteredPartitionIterator;
import org.apache.cassandra.db.rows.AbstractUnfilteredRowIterator;
import org.apache.cassandra.db.rows.BTreeRow;
import org.apache.cassandra.db.rows.BufferCell;
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.Rows;
import org.apache.cassandra.db.rows.Unfiltered;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.index.transactions.UpdateTransaction;
import org.apache.cassandra.io.sstable.SSTableReadsListener;
import org.apache.cassandra.schema.ColumnMetadata;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.TableMetadataRef;
import org.apache.cassandra.utils.concurrent.OpOrder;

/**
 * Stores nothing, and answers every read with rows that it has ready: what Cassandra does around a memtable, and so what no
 * memtable can be faster than. Only for measuring.
 *
 * <p>That is one row in a table without clustering columns; in one with a single clustering column of type {@code int} as many
 * as the bench asks for, whatever the slice. Parameter {@code value_bytes}: the length of the value in each regular column of a
 * row, default 1024.
 */
public final class NullMemtable extends AbstractMemtableWithCommitlog {
    private final List<Row> rows;

    private NullMemtable(
            AtomicReference<CommitLogPosition> commitLogLowerBound, TableMetadataRef metadata, int valueBytes) {
        super(metadata, commitLogLowerBound);
        this.rows = rows(metadata.get(), valueBytes);
    }

    private static List<Row> rows(TableMetadata metadata, int valueBytes) {
        if (metadata.clusteringColumns().isEmpty()) {
            return List.of(row(metadata, Clustering.EMPTY, valueBytes));
        }
        if (!metadata.comparator.subtypes().equals(List.of(Int32Type.instance))) {
            throw new IllegalArgumentException(metadata + " has other clustering columns than one of type int");
        }
        return IntStream.range(0, Workload.RANGE_ROWS)
                .mapToObj(number -> row(metadata, Clustering.make(Int32Type.instance.decompose(number)), valueBytes))
                .toList();
    }

    private static Row row(TableMetadata metadata, Clustering<?> clustering, int valueBytes) {
        Row.Builder builder = BTreeRow.sortedBuilder();
        builder.newRow(clustering);
        builder.addPrimaryKeyLivenessInfo(LivenessInfo.create(1, LivenessInfo.NO_EXPIRATION_TIME));
        for (ColumnMetadata column : metadata.regularColumns()) {
            builder.addCell(BufferCell.live(column, 1, ByteBuffer.allocate(valueBytes)));
        }
        return builder.build();
    }

    private record Factory(int valueBytes) implements Memtable.Factory {
        @Override
        public Memtable create(
                AtomicReference<CommitLogPosition> commitLogLowerBound, TableMetadataRef metadata, Owner owner) {
            return new NullMemtable(commitLogLowerBound, metadata, valueBytes);
        }

        /** As a store with a log of its own. */
        @Override
        public boolean writesShouldSkipCommitLog() {
            return true;
        }
    }

    /** What Cassandra calls for a configuration of {@code cassandra.yaml}. */
    public static Memtable.Factory factory(Map<String, String> parameters) {
        String valueBytes = parameters.remove("value_bytes");
        return new Factory(valueBytes == null ? 1024 : Integer.parseInt(valueBytes));
    }

    @Override
    public long put(PartitionUpdate update, UpdateTransaction indexer, OpOrder.Group opGroup) {
        return Long.MAX_VALUE;
    }

    @Override
    public UnfilteredRowIterator rowIterator(DecoratedKey key) {
        return new ReadyRows(metadata(), key, ColumnFilter.all(metadata()), false, rows);
    }

    @Override
    public UnfilteredRowIterator rowIterator(
            DecoratedKey key, Slices slices, ColumnFilter columns, boolean reversed, SSTableReadsListener listener) {
        return new ReadyRows(metadata(), key, columns, reversed, rows);
    }

    private static final class ReadyRows extends AbstractUnfilteredRowIterator {
        private final Iterator<Row> rows;

        ReadyRows(TableMetadata metadata, DecoratedKey key, ColumnFilter columns, boolean reversed, List<Row> rows) {
            super(
                    metadata,
                    key,
                    DeletionTime.LIVE,
                    columns.fetchedColumns(),
                    Rows.EMPTY_STATIC_ROW,
                    reversed,
                    EncodingStats.NO_STATS);
            this.rows = rows.iterator();
        }

        @Override
        protected Unfiltered computeNext() {
            return rows.hasNext() ? rows.next() : endOfData();
        }
    }

    @Override
    public UnfilteredPartitionIterator partitionIterator(
            ColumnFilter columns, DataRange range, SSTableReadsListener listener) {
        return new AbstractUnfilteredPartitionIterator() {
            @Override
            public TableMetadata metadata() {
                return NullMemtable.this.metadata();
            }

            @Override
            public boolean hasNext() {
                return false;
            }

            @Override
            public UnfilteredRowIterator next() {
                throw new NoSuchElementException();
            }
        };
    }

    @Override
    public FlushablePartitionSet<?> getFlushSet(PartitionPosition from, PartitionPosition to) {
        return new AbstractFlushablePartitionSet<Partition>() {
            @Override
            public Memtable memtable() {
                return NullMemtable.this;
            }

            @Override
            public PartitionPosition from() {
                return from;
            }

            @Override
            public PartitionPosition to() {
                return to;
            }

            @Override
            public long partitionCount() {
                return 0;
            }

            @Override
            public long partitionKeysSize() {
                return 0;
            }

            @Override
            public Iterator<Partition> iterator() {
                return Collections.emptyIterator();
            }
        };
    }

    @Override
    public boolean shouldSwitch(FlushReason reason) {
        return false;
    }

    @Override
    public boolean isClean() {
        return true;
    }

    @Override
    public long partitionCount() {
        return 0;
    }

    @Override
    public long getLiveDataSize() {
        return 0;
    }

    @Override
    public void addMemoryUsageTo(MemoryUsage usage) {}

    @Override
    public void markExtraOnHeapUsed(long additionalSpace, OpOrder.Group opGroup) {}

    @Override
    public void markExtraOffHeapUsed(long additionalSpace, OpOrder.Group opGroup) {}

    @Override
    public void metadataUpdated() {}

    @Override
    public void localRangesUpdated() {}

    @Override
    public void performSnapshot(String snapshotName) {}
}

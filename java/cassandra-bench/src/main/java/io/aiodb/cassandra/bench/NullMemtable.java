package io.aiodb.cassandra.bench;

import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.Iterator;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.concurrent.atomic.AtomicReference;
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
 * Stores nothing, and answers every read with one row that it has ready: what Cassandra does around a memtable, and so what
 * no memtable can be faster than. Only for measuring.
 *
 * <p>Its tables have no clustering columns. Parameter {@code value_bytes}: the length of the value in each regular column
 * of the row, default 1024.
 */
public final class NullMemtable extends AbstractMemtableWithCommitlog {
    private final Row row;

    private NullMemtable(
            AtomicReference<CommitLogPosition> commitLogLowerBound, TableMetadataRef metadata, int valueBytes) {
        super(metadata, commitLogLowerBound);
        this.row = row(metadata.get(), valueBytes);
    }

    private static Row row(TableMetadata metadata, int valueBytes) {
        if (!metadata.clusteringColumns().isEmpty()) {
            throw new IllegalArgumentException(metadata + " has clustering columns, and this memtable one row for each key");
        }
        Row.Builder builder = BTreeRow.sortedBuilder();
        builder.newRow(Clustering.EMPTY);
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
        return new OneRow(metadata(), key, ColumnFilter.all(metadata()), false, row);
    }

    @Override
    public UnfilteredRowIterator rowIterator(
            DecoratedKey key, Slices slices, ColumnFilter columns, boolean reversed, SSTableReadsListener listener) {
        return new OneRow(metadata(), key, columns, reversed, row);
    }

    private static final class OneRow extends AbstractUnfilteredRowIterator {
        private Row next;

        OneRow(TableMetadata metadata, DecoratedKey key, ColumnFilter columns, boolean reversed, Row row) {
            super(
                    metadata,
                    key,
                    DeletionTime.LIVE,
                    columns.fetchedColumns(),
                    Rows.EMPTY_STATIC_ROW,
                    reversed,
                    EncodingStats.NO_STATS);
            next = row;
        }

        @Override
        protected Unfiltered computeNext() {
            Row given = next;
            next = null;
            return given == null ? endOfData() : given;
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

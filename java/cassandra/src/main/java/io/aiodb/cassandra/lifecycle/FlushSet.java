package io.aiodb.cassandra.lifecycle;

import io.aiodb.cassandra.read.PartitionScan;
import io.aiodb.cassandra.read.SizeSample;
import io.aiodb.cassandra.table.StoredTable;
import java.util.Collections;
import java.util.Iterator;
import java.util.NavigableSet;
import java.util.NoSuchElementException;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.PartitionPosition;
import org.apache.cassandra.db.RegularAndStaticColumns;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.commitlog.CommitLogPosition;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.db.partitions.Partition;
import org.apache.cassandra.db.repair.CassandraValidationIterator;
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.db.rows.WrappingUnfilteredRowIterator;
import org.apache.cassandra.schema.TableMetadata;

/**
 * The rows that streaming and a change of the memtable write to SSTables: the partitions of a range as they come, none of
 * them in memory as a whole.
 */
public final class FlushSet implements Memtable.FlushablePartitionSet<FlushSet.Streamed> {
    /** How far up the stack a validation is when it asks for a memtable's rows. */
    private static final int MAX_CALLERS = 12;

    private final Memtable memtable;
    private final StoredTable storedTable;
    private final PartitionPosition from;
    private final PartitionPosition to;
    private final CommitLogPosition lower;
    private final CommitLogPosition upper;

    /** As it is now: columns that are added later are not written. */
    private final TableMetadata metadata;

    private final SizeSample sizes;

    /**
     * @param memtable that Cassandra is told it is of; null if nobody asks
     * @param from where it begins, and {@code to} where it ends; null if it does not
     * @param lower from where in the commit log it has all writes, and {@code upper} up to where
     */
    public FlushSet(
            Memtable memtable,
            TableMetadata metadata,
            StoredTable storedTable,
            PartitionPosition from,
            PartitionPosition to,
            CommitLogPosition lower,
            CommitLogPosition upper) {
        this.memtable = memtable;
        this.storedTable = storedTable;
        this.from = from;
        this.to = to;
        this.lower = lower;
        this.upper = upper;
        this.metadata = metadata;
        this.sizes = SizeSample.sample(storedTable, from, to, metadata.partitioner);
    }

    /**
     * Whether this thread asks for a memtable's rows in order to validate them, and not to write them to an SSTable:
     * Cassandra asks in the same way for both ({@code ColumnFamilyStore.writeAndAddMemtableRanges}).
     */
    public static boolean isToBeValidated() {
        String validation = CassandraValidationIterator.class.getName();
        return StackWalker.getInstance().walk(callers -> callers.limit(MAX_CALLERS)
                .anyMatch(caller -> caller.getClassName().equals(validation)));
    }

    /** Nothing where a validation reads the store by itself. */
    @Override
    public Iterator<Streamed> iterator() {
        if (isToBeValidated()) {
            return Collections.emptyIterator();
        }
        return partitions();
    }

    /** The same for a caller that closes them. */
    Partitions partitions() {
        return new Partitions(PartitionScan.of(storedTable, metadata, from, to));
    }

    @Override
    public Memtable memtable() {
        return memtable;
    }

    @Override
    public TableMetadata metadata() {
        return metadata;
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
    public CommitLogPosition commitLogLowerBound() {
        return lower;
    }

    @Override
    public CommitLogPosition commitLogUpperBound() {
        return upper;
    }

    @Override
    public RegularAndStaticColumns columns() {
        return metadata.regularAndStaticColumns();
    }

    @Override
    public EncodingStats encodingStats() {
        return storedTable.stats().encodingStats();
    }

    @Override
    public long partitionCount() {
        return sizes.partitions();
    }

    @Override
    public long partitionKeysSize() {
        return sizes.partitionKeyBytes();
    }

    @Override
    public long dataSize() {
        return sizes.bytes();
    }

    /**
     * The partitions of a scan. Cassandra's writers close each of them, and nothing else: one that is closed before its end had a
     * writer that failed, and closes the scan.
     */
    static final class Partitions implements Iterator<Streamed>, AutoCloseable {
        private final PartitionScan scan;
        private boolean abandoned;

        private Partitions(PartitionScan scan) {
            this.scan = scan;
        }

        /** @throws IllegalStateException if the writer has left rows of a partition, which would be missing elsewhere */
        @Override
        public boolean hasNext() {
            if (abandoned) {
                throw new IllegalStateException("rows of a partition of " + scan.metadata() + " were left out");
            }
            return scan.hasNext();
        }

        @Override
        public Streamed next() {
            if (!hasNext()) {
                throw new NoSuchElementException();
            }
            return new Streamed(new Watched(scan.next()));
        }

        @Override
        public void close() {
            scan.close();
        }

        /** Sees whether its rows are taken to their end. */
        private final class Watched implements WrappingUnfilteredRowIterator {
            private final UnfilteredRowIterator rows;
            private boolean ended;

            Watched(UnfilteredRowIterator rows) {
                this.rows = rows;
            }

            @Override
            public UnfilteredRowIterator wrapped() {
                return rows;
            }

            @Override
            public boolean hasNext() {
                boolean more = rows.hasNext();
                ended |= !more;
                return more;
            }

            @Override
            public void close() {
                rows.close();
                if (!ended) {
                    abandoned = true;
                    scan.close();
                }
            }
        }
    }

    /** A partition that can be gone through once. */
    static final class Streamed implements Partition {
        private final UnfilteredRowIterator rows;

        private Streamed(UnfilteredRowIterator rows) {
            this.rows = rows;
        }

        @Override
        public TableMetadata metadata() {
            return rows.metadata();
        }

        @Override
        public DecoratedKey partitionKey() {
            return rows.partitionKey();
        }

        @Override
        public DeletionTime partitionLevelDeletion() {
            return rows.partitionLevelDeletion();
        }

        @Override
        public RegularAndStaticColumns columns() {
            return rows.columns();
        }

        @Override
        public EncodingStats stats() {
            return rows.stats();
        }

        @Override
        public boolean isEmpty() {
            return rows.isEmpty();
        }

        @Override
        public boolean hasRows() {
            return rows.hasNext();
        }

        @Override
        public UnfilteredRowIterator unfilteredIterator() {
            return rows;
        }

        @Override
        public Row getRow(Clustering<?> clustering) {
            throw new UnsupportedOperationException("a partition that is streamed has no random access");
        }

        @Override
        public UnfilteredRowIterator unfilteredIterator(ColumnFilter columns, Slices slices, boolean reversed) {
            throw new UnsupportedOperationException("a partition that is streamed is gone through as a whole");
        }

        @Override
        public UnfilteredRowIterator unfilteredIterator(
                ColumnFilter columns, NavigableSet<Clustering<?>> clusterings, boolean reversed) {
            throw new UnsupportedOperationException("a partition that is streamed is gone through as a whole");
        }
    }
}

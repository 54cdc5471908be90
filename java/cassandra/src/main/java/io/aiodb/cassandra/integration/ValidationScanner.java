package io.aiodb.cassandra.integration;

import com.google.common.collect.ImmutableSet;
import io.aiodb.cassandra.read.PartitionScan;
import io.aiodb.cassandra.table.StoredTable;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Set;
import org.apache.cassandra.db.PartitionPosition;
import org.apache.cassandra.db.partitions.AbstractUnfilteredPartitionIterator;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.dht.Range;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.io.sstable.ISSTableScanner;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.schema.TableMetadata;

/** The partitions of ranges of the ring, one after the other, out of a store. Its lengths are estimates. */
final class ValidationScanner extends AbstractUnfilteredPartitionIterator implements ISSTableScanner {
    private final ValidationReader reader;
    private final StoredTable storedTable;
    private final Iterator<Range<Token>> ranges;
    private final long bytes;
    private final double meanBytes;

    /** Null before the first range. */
    private PartitionScan scan;

    private long passed;

    /** @param ranges in their order, none over another */
    ValidationScanner(ValidationReader reader, StoredTable storedTable, List<Range<Token>> ranges) {
        this.reader = reader;
        this.storedTable = storedTable;
        this.ranges = ranges.iterator();
        this.bytes = reader.getPositionsForRanges(ranges).stream()
                .mapToLong(range -> range.upperPosition)
                .sum();
        this.meanBytes = (double) bytes / Math.max(1, reader.estimatedKeysForRanges(ranges));
    }

    @Override
    public TableMetadata metadata() {
        return reader.metadata();
    }

    @Override
    public boolean hasNext() {
        while (scan == null || !scan.hasNext()) {
            if (!ranges.hasNext()) {
                return false;
            }
            Range<PartitionPosition> rows = Range.makeRowRange(ranges.next());
            scan = PartitionScan.of(storedTable, metadata(), rows.left, rows.right);
        }
        return true;
    }

    @Override
    public UnfilteredRowIterator next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        passed++;
        return scan.next();
    }

    @Override
    public long getLengthInBytes() {
        return bytes;
    }

    @Override
    public long getCompressedLengthInBytes() {
        return bytes;
    }

    @Override
    public long getCurrentPosition() {
        return Math.min(bytes, (long) (passed * meanBytes));
    }

    @Override
    public long getBytesScanned() {
        return getCurrentPosition();
    }

    @Override
    public Set<SSTableReader> getBackingSSTables() {
        return ImmutableSet.of(reader);
    }

    @Override
    public void close() {
        if (scan != null) {
            scan.close();
        }
    }
}

package io.aiodb.cassandra.integration;

import io.aiodb.cassandra.read.SizeSample;
import io.aiodb.cassandra.table.StoredMemtable;
import io.aiodb.cassandra.table.StoredTable;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.cassandra.db.BufferDecoratedKey;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.DataRange;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.PartitionPosition;
import org.apache.cassandra.db.SerializationHeader;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.partitions.UnfilteredPartitionIterator;
import org.apache.cassandra.db.repair.CassandraValidationIterator;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.dht.Range;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.io.sstable.AbstractRowIndexEntry;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.ISSTableScanner;
import org.apache.cassandra.io.sstable.IVerifier;
import org.apache.cassandra.io.sstable.KeyReader;
import org.apache.cassandra.io.sstable.SSTableReadsListener;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.sstable.metadata.MetadataCollector;
import org.apache.cassandra.io.util.ChannelProxy;
import org.apache.cassandra.utils.ByteBufferUtil;
import org.apache.cassandra.utils.OutputHandler;

/**
 * A repair's validation gets this for the SSTable that Cassandra would have a memtable written to
 * ({@code ColumnFamilyStore.writeAndAddMemtableRanges}): it reads the store, and has no files. A validation asks only for
 * sizes and a scanner.
 *
 * @see CassandraValidationIterator
 */
public final class ValidationReader extends SSTableReader {
    private final StoredTable storedTable;
    private final long partitions;

    /** Of each range that was asked for. */
    private final Map<Range<Token>, SizeSample> sizes = new HashMap<>();

    /** Cassandra logs its length. */
    private final ChannelProxy nothing = new ChannelProxy("/dev/null");

    private ValidationReader(Builder builder, Owner owner) {
        super(builder, owner);
        this.storedTable = builder.storedTable;
        this.partitions = builder.partitions;
    }

    /**
     * Of the rows that a table has now.
     *
     * @param descriptor of the SSTable that is not written
     * @param partitions how many are to be validated, about
     */
    public static ValidationReader open(
            ColumnFamilyStore cfs, Descriptor descriptor, SerializationHeader header, long partitions) {
        StoredTable storedTable = StoredMemtable.storedTableOf(cfs);
        if (storedTable == null) {
            throw new IllegalStateException(
                    cfs.metadata() + " has got another memtable while it was about to be validated: repair it again");
        }
        DecoratedKey any = new BufferDecoratedKey(
                cfs.getPartitioner().getMinimumToken(), ByteBufferUtil.EMPTY_BYTE_BUFFER);
        return new Builder(descriptor, storedTable, partitions)
                .setComponents(Set.of())
                .setTableMetadataRef(cfs.metadata)
                .setStatsMetadata(MetadataCollector.defaultStatsMetadata())
                .setSerializationHeader(header)
                .setOpenReason(OpenReason.NORMAL)
                .setFirst(any)
                .setLast(any)
                .build(cfs, false, false);
    }

    @Override
    protected List<AutoCloseable> setupInstance(boolean trackHotness) {
        return List.of(nothing);
    }

    @Override
    public ChannelProxy getDataChannel() {
        return nothing;
    }

    @Override
    public ISSTableScanner getScanner(Collection<Range<Token>> ranges) {
        return new ValidationScanner(this, storedTable, Range.normalize(ranges));
    }

    private synchronized SizeSample sizes(Range<Token> range) {
        return sizes.computeIfAbsent(range, asked -> {
            Range<PartitionPosition> rows = Range.makeRowRange(asked);
            return SizeSample.sample(storedTable, rows.left, rows.right, getPartitioner());
        });
    }

    @Override
    public long estimatedKeys() {
        return partitions;
    }

    @Override
    public long estimatedKeysForRanges(Collection<Range<Token>> ranges) {
        return Range.normalize(ranges).stream()
                .mapToLong(range -> sizes(range).partitions())
                .sum();
    }

    @Override
    public boolean isEstimationInformative() {
        return true;
    }

    /** One for each range, of its length: there are no positions. */
    @Override
    public List<PartitionPositionBounds> getPositionsForRanges(Collection<Range<Token>> ranges) {
        return Range.normalize(ranges).stream()
                .map(range -> new PartitionPositionBounds(0, sizes(range).bytes()))
                .toList();
    }

    @Override
    public void releaseInMemoryComponents() {
        // There are none.
    }

    @Override
    public Iterable<DecoratedKey> getKeySamples(Range<Token> range) {
        return Collections.emptyList();
    }

    @Override
    public UnfilteredRowIterator rowIterator(
            DecoratedKey key, Slices slices, ColumnFilter columns, boolean reversed, SSTableReadsListener listener) {
        throw onlyValidated();
    }

    @Override
    public UnfilteredPartitionIterator partitionIterator(
            ColumnFilter columns, DataRange range, SSTableReadsListener listener) {
        throw onlyValidated();
    }

    @Override
    public SSTableReader cloneWithRestoredStart(DecoratedKey start) {
        throw onlyValidated();
    }

    @Override
    public SSTableReader cloneWithNewStart(DecoratedKey start) {
        throw onlyValidated();
    }

    @Override
    protected AbstractRowIndexEntry getRowIndexEntry(
            PartitionPosition key, Operator operator, boolean updateStats, SSTableReadsListener listener) {
        throw onlyValidated();
    }

    @Override
    public KeyReader keyReader() {
        throw onlyValidated();
    }

    @Override
    public DecoratedKey firstKeyBeyond(PartitionPosition position) {
        throw onlyValidated();
    }

    @Override
    public DecoratedKey keyAtPositionFromSecondaryIndex(long position) {
        throw onlyValidated();
    }

    @Override
    public boolean mayContainAssumingKeyIsInRange(DecoratedKey key) {
        throw onlyValidated();
    }

    @Override
    public IVerifier getVerifier(
            ColumnFamilyStore cfs, OutputHandler output, boolean isOffline, IVerifier.Options options) {
        throw onlyValidated();
    }

    private UnsupportedOperationException onlyValidated() {
        return new UnsupportedOperationException(this + " is only here to be validated");
    }

    @Override
    public String toString() {
        return metadata() + " in the store";
    }

    private static final class Builder extends SSTableReader.Builder<ValidationReader, Builder> {
        private final StoredTable storedTable;
        private final long partitions;

        private Builder(Descriptor descriptor, StoredTable storedTable, long partitions) {
            super(descriptor);
            this.storedTable = storedTable;
            this.partitions = partitions;
        }

        @Override
        protected ValidationReader buildInternal(Owner owner) {
            return new ValidationReader(this, owner);
        }
    }
}

package io.aiodb.cassandra.format;

import io.aiodb.store.ValueKind;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.MutableDeletionInfo;
import org.apache.cassandra.db.RangeTombstone;
import org.apache.cassandra.db.SerializationHeader;
import org.apache.cassandra.db.Slice;
import org.apache.cassandra.db.rows.BTreeRow;
import org.apache.cassandra.db.rows.DeserializationHelper;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.Rows;
import org.apache.cassandra.db.rows.UnfilteredSerializer;
import org.apache.cassandra.io.util.DataInputBuffer;
import org.apache.cassandra.io.util.DataInputPlus;
import org.apache.cassandra.schema.TableMetadata;

/**
 * Reads the frames that a {@link FrameWriter} has written: rows, static or not, merged out of their frames. A reader belongs
 * to one thread at a time.
 */
public final class FrameReader {
    private static final int VERSION = FrameWriter.VERSION;
    private static final UnfilteredSerializer ROWS = UnfilteredSerializer.serializer;

    private final boolean isStatic;
    private final SerializationHeaders headers;
    private final TableMetadata metadata;
    private final DeserializationHelper helper;
    private final Row.Builder builder = BTreeRow.sortedBuilder();
    private int updates;

    /**
     * @param isStatic whether the rows are static ones
     * @param headers of the table; they may grow while rows are read
     * @param metadata the version of the table that the rows are for
     */
    public FrameReader(boolean isStatic, SerializationHeaders headers, TableMetadata metadata) {
        this.isStatic = isStatic;
        this.headers = headers;
        this.metadata = metadata;
        this.helper = new DeserializationHelper(metadata, VERSION, DeserializationHelper.Flag.LOCAL);
    }

    /**
     * The row that the frames of a value are together, in the columns that this version of the table knows; null if
     * nothing is left of it, since its columns were dropped.
     *
     * @throws IllegalStateException if the value does not parse
     */
    public Row row(ByteBuffer value) {
        Row merged = null;
        updates = 0;
        try (DataInputBuffer in = input(value)) {
            while (in.available() > 0) {
                in.readUnsignedVInt32();
                updates++;
                int number = readHeader(in);
                SerializationHeader header = headers.forReading(number, metadata);
                Row row = isStatic ? staticRow(in, header) : row(in, header);
                if (row != null && headers.isYounger(number, metadata)) {
                    row = withoutUnknown(row, metadata);
                }
                if (row != null) {
                    merged = merged == null ? row : Rows.merge(merged, row);
                }
            }
            return merged;
        } catch (IOException failure) {
            throw new IllegalStateException(metadata + ": a stored row does not parse", failure);
        }
    }

    /** How many updates the last row was made of. */
    public int updates() {
        return updates;
    }

    private Row row(DataInputBuffer in, SerializationHeader header) throws IOException {
        // It goes on after a row that has become empty, and ends at the mark.
        Row row = (Row) ROWS.deserialize(in, header, helper, builder);
        if (row != null) {
            in.readByte();
        }
        return row;
    }

    private Row staticRow(DataInputBuffer in, SerializationHeader header) throws IOException {
        Row row = ROWS.deserializeStaticRow(in, header, helper);
        in.readByte();
        return row.isEmpty() ? null : row;
    }

    /** Reads the beginning of a row's frame, behind its length; returns the number of its header. */
    private static int readHeader(DataInputPlus in) throws IOException {
        boolean hasCover = in.readByte() == ValueKind.WITH_COVER;
        int number = in.readUnsignedVInt32();
        if (hasCover) {
            RowCover.skip(in);
        }
        return number;
    }

    /** Reads the beginning of a frame that is of no row. */
    private static void skipStart(DataInputPlus in) throws IOException {
        in.readUnsignedVInt32();
        in.readByte();
    }

    /** The only row to be read, as {@link #row(ByteBuffer)} gives it. */
    public static Row row(ByteBuffer value, boolean isStatic, SerializationHeaders headers, TableMetadata metadata) {
        return new FrameReader(isStatic, headers, metadata).row(value);
    }

    /**
     * To read a value by. Cassandra's {@code FastByteOperations} takes a buffer that does not give its array for one outside
     * of the heap, and would read at an address that is none; so it gets a copy of one that lies in the heap and is only to
     * be read.
     */
    static DataInputBuffer input(ByteBuffer value) {
        if (value.hasArray() || value.isDirect()) {
            return new DataInputBuffer(value, true);
        }
        return new DataInputBuffer(ByteBuffer.allocate(value.remaining()).put(value.duplicate()).flip(), false);
    }

    private static Row withoutUnknown(Row row, TableMetadata metadata) {
        return row.transformAndFilter(data -> metadata.getColumn(data.column().name) == null ? null : data);
    }

    /**
     * Whether a row's value has columns that this version of the table does not know yet, so that it must not replace it.
     */
    public static boolean isYounger(ByteBuffer value, SerializationHeaders headers, TableMetadata metadata) {
        try (DataInputBuffer in = input(value)) {
            while (in.available() > 0) {
                int length = in.readUnsignedVInt32();
                int left = in.available() - length;
                if (headers.isYounger(readHeader(in), metadata)) {
                    return true;
                }
                in.skipBytesFully(in.available() - left);
            }
            return false;
        } catch (IOException failure) {
            throw new IllegalStateException(metadata + ": a stored row does not parse", failure);
        }
    }

    /** How many updates a value is made of. */
    public static int count(ByteBuffer value) {
        try (DataInputBuffer in = input(value)) {
            int frames = 0;
            while (in.available() > 0) {
                in.skipBytesFully(in.readUnsignedVInt32());
                frames++;
            }
            return frames;
        } catch (IOException failure) {
            throw new IllegalStateException("a stored value does not parse", failure);
        }
    }

    /** Adds the deletions of the whole partition that a value has. */
    public static void addDeletions(ByteBuffer value, MutableDeletionInfo deletions) {
        try (DataInputBuffer in = input(value)) {
            while (in.available() > 0) {
                skipStart(in);
                deletions.add(deletionTime(in));
            }
        } catch (IOException failure) {
            throw new IllegalStateException("a stored deletion does not parse", failure);
        }
    }

    /** Adds the range tombstones of a value. */
    public static void addRangeTombstones(ByteBuffer value, MutableDeletionInfo deletions, TableMetadata metadata) {
        try (DataInputBuffer in = input(value)) {
            while (in.available() > 0) {
                skipStart(in);
                Slice slice = Slice.serializer.deserialize(in, VERSION, metadata.comparator.subtypes());
                deletions.add(new RangeTombstone(slice, deletionTime(in)), metadata.comparator);
            }
        } catch (IOException failure) {
            throw new IllegalStateException(metadata + ": a stored range tombstone does not parse", failure);
        }
    }

    private static DeletionTime deletionTime(DataInputPlus in) throws IOException {
        long markedForDeleteAt = in.readLong();
        return DeletionTime.build(markedForDeleteAt, in.readLong());
    }
}

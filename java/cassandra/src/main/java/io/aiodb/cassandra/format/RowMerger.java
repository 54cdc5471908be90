package io.aiodb.cassandra.format;

import java.nio.ByteBuffer;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.SerializationHelper;
import org.apache.cassandra.schema.TableMetadata;

/**
 * Makes one frame of all that a stored row has. Who puts it in their place lets nobody append to the row meanwhile. A merger
 * belongs to one thread at a time.
 */
public final class RowMerger {
    private final boolean isStatic;
    private final SerializationHeaders headers;
    private final TableMetadata metadata;
    private final SerializationHeaders.Numbered header;
    private final SerializationHelper helper;
    private final FrameWriter frames = new FrameWriter();
    private Row row;

    /**
     * @param isStatic whether the rows are static ones
     * @param headers of the table; that of this version is stored when this returns
     * @param metadata the version of the table that the rows are read and written by
     */
    public RowMerger(boolean isStatic, SerializationHeaders headers, TableMetadata metadata) {
        this.isStatic = isStatic;
        this.headers = headers;
        this.metadata = metadata;
        this.header = headers.forWriting(metadata);
        this.helper = new SerializationHelper(header.header());
    }

    /**
     * Reads a row. False if it must stay as it is, since it has columns which this version of the table does not know: it has
     * not got them yet, or it has dropped them, and they were written after that.
     */
    public boolean read(ByteBuffer value) {
        row = null;
        if (FrameReader.isYounger(value, headers, metadata)) {
            return false;
        }
        Row found = FrameReader.row(value, isStatic, headers, metadata);
        if (found != null && !found.columns().stream().allMatch(column -> metadata.getColumn(column.name) != null)) {
            return false;
        }
        row = found;
        return true;
    }

    /** The row that was read last; null if nothing is left of it. */
    public Row row() {
        return row;
    }

    /** The only frame of a row. The buffer is valid until the next one. */
    public ByteBuffer frame(Row merged) {
        return frames.row(merged, RowCover.of(merged, header.header().columns(isStatic)), header, helper);
    }
}

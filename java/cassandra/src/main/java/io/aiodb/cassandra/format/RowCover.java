package io.aiodb.cassandra.format;

import java.io.IOException;
import java.util.Iterator;
import org.apache.cassandra.db.Columns;
import org.apache.cassandra.db.rows.Cell;
import org.apache.cassandra.db.rows.ColumnData;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.io.util.DataInputPlus;
import org.apache.cassandra.io.util.DataOutputPlus;
import org.apache.cassandra.schema.ColumnMetadata;

/**
 * The parts of a row that an update sets, and from when they are, so that a store can tell which updates others stand for,
 * see {@link io.aiodb.store.ValueKind#FRAMES}.
 *
 * @param parts bit 0 is the row's own timestamp, bit 1 and those after it are the columns of its header
 * @param earliest the earliest timestamp of a part
 * @param latest the latest one
 */
public record RowCover(long parts, long earliest, long latest) {
    /** The columns that have a bit: a set is a number that must not be negative. */
    private static final int MAX_COLUMNS = 62;

    /**
     * The cover of a row; null if it must stand alone: it deletes or counts, has a column of several cells, has too many
     * columns, or nothing at all.
     */
    public static RowCover of(Row row, Columns columns) {
        if (!row.deletion().isLive()) {
            return null;
        }
        long parts = 0;
        long earliest = Long.MAX_VALUE;
        long latest = Long.MIN_VALUE;
        if (!row.primaryKeyLivenessInfo().isEmpty()) {
            parts = 1;
            earliest = row.primaryKeyLivenessInfo().timestamp();
            latest = earliest;
        }
        Iterator<ColumnMetadata> known = columns.iterator();
        int part = 0;
        for (ColumnData data : row) {
            ColumnMetadata column = data.column();
            do {
                part++;
            } while (known.next().compareTo(column) != 0);
            if (column.isComplex() || column.isCounterColumn() || part > MAX_COLUMNS) {
                return null;
            }
            long timestamp = ((Cell<?>) data).timestamp();
            parts |= 1L << part;
            earliest = Math.min(earliest, timestamp);
            latest = Math.max(latest, timestamp);
        }
        // Times that lie so far apart that their difference is no number say nothing.
        return parts == 0 || latest - earliest < 0 ? null : new RowCover(parts, earliest, latest);
    }

    /** Whether it has every part that a row of these columns can have. */
    public boolean isComplete(Columns columns) {
        return columns.size() <= MAX_COLUMNS && parts == (1L << 1 + columns.size()) - 1;
    }

    void write(DataOutputPlus out) throws IOException {
        out.writeUnsignedVInt(parts);
        out.writeLong(earliest);
        out.writeUnsignedVInt(latest - earliest);
    }

    /** @throws IOException if it is none */
    static RowCover read(DataInputPlus in) throws IOException {
        long parts = in.readUnsignedVInt();
        long earliest = in.readLong();
        RowCover cover = new RowCover(parts, earliest, earliest + in.readUnsignedVInt());
        if (parts == 0 || cover.latest < earliest) {
            throw new IOException(cover + " covers nothing");
        }
        return cover;
    }

    static void skip(DataInputPlus in) throws IOException {
        in.readUnsignedVInt();
        in.skipBytesFully(Long.BYTES);
        in.readUnsignedVInt();
    }
}

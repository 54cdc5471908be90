package io.aiodb.cassandra.format;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.cassandra.cql3.ColumnIdentifier;
import org.apache.cassandra.db.SerializationHeader;
import org.apache.cassandra.db.RegularAndStaticColumns;
import org.apache.cassandra.db.marshal.AbstractType;
import org.apache.cassandra.db.marshal.TypeParser;
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.io.util.DataInputBuffer;
import org.apache.cassandra.io.util.DataOutputBuffer;
import org.apache.cassandra.schema.ColumnMetadata;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.ByteBufferUtil;

/**
 * Which columns a table had when its rows were written. A stored row names one of these headers by its number; columns that
 * were added, dropped or added again later are told apart by it. Headers are never changed, and few: one for each change of
 * a table's columns.
 */
public final class SerializationHeaders {
    /** Where the headers of one table are kept. */
    public interface Storage {
        /** All of them, in the order of their numbers. */
        List<byte[]> load();

        /** Keeps one, durably. */
        void save(int number, byte[] header);
    }

    /** A header to write rows with. */
    public record Numbered(int number, SerializationHeader header) {}

    private record Column(ByteBuffer name, boolean isStatic, String type) {}

    /**
     * The headers as those of one version of the table.
     *
     * @param younger which of them have columns that this version does not know yet
     * @param later whether there may be rows of a later version, with such columns or some that it takes for dropped
     * @param current the number of its own, or -1
     */
    private record Resolved(
            TableMetadata metadata, List<SerializationHeader> headers, BitSet younger, boolean later, int current) {
        SerializationHeader header(int number) {
            if (number >= headers.size()) {
                throw new IllegalStateException(
                        metadata + ": a stored row has header " + number + ", but there are " + headers.size());
            }
            return headers.get(number);
        }
    }

    private final Storage storage;
    private final List<List<Column>> stored = new ArrayList<>();

    /** The columns that were dropped, and added again, by versions of the table that rows were written or read with. */
    private final Set<ColumnIdentifier> addedAgain = new HashSet<>();
    private volatile Resolved resolved;

    /**
     * Loads the headers of a table.
     *
     * @throws IllegalStateException if one does not parse
     */
    public SerializationHeaders(Storage storage) {
        this.storage = storage;
        storage.load().forEach(header -> stored.add(decode(header)));
    }

    /** The header for rows of this version of the table; it is stored when this returns. */
    public Numbered forWriting(TableMetadata metadata) {
        Resolved now = resolve(metadata);
        if (now.current < 0) {
            now = add(metadata, columns(metadata.regularAndStaticColumns()));
        }
        return new Numbered(now.current, now.headers.get(now.current));
    }

    /**
     * The header for an update with these columns. Some may be ones that the table has dropped: the coordinator of the
     * update may not have known that yet, or may know that they were added again.
     */
    public Numbered forWriting(TableMetadata metadata, RegularAndStaticColumns columns) {
        RegularAndStaticColumns own = metadata.regularAndStaticColumns();
        if (columns == own || own.includes(columns)) {
            return forWriting(metadata);
        }
        List<Column> all = columns(own.mergeTo(columns));
        Resolved now = add(metadata, all);
        int number = number(all);
        return new Numbered(number, now.headers.get(number));
    }

    /** The header of a stored row, for this version of the table. */
    SerializationHeader forReading(int number, TableMetadata metadata) {
        return resolve(metadata).header(number);
    }

    /**
     * Whether a header has columns that this version of the table does not know yet. So it is for a reader or a purge that
     * began before a column was added, and meets rows that were written since.
     */
    boolean isYounger(int number, TableMetadata metadata) {
        return resolve(metadata).younger.get(number);
    }

    /** Whether there may be rows of a later version of the table, with columns that this one does not have. */
    public boolean hasLater(TableMetadata metadata) {
        return resolve(metadata).later;
    }

    private Resolved resolve(TableMetadata metadata) {
        Resolved now = resolved;
        if (now == null || now.metadata != metadata) {
            now = resolveAgain(metadata);
        }
        return now;
    }

    private synchronized Resolved resolveAgain(TableMetadata metadata) {
        List<SerializationHeader> headers = new ArrayList<>();
        BitSet younger = new BitSet();
        for (List<Column> columns : stored) {
            younger.set(headers.size(), columns.stream().anyMatch(column -> known(column, metadata) == null));
            headers.add(header(columns, metadata));
        }
        for (ColumnMetadata column : metadata.regularAndStaticColumns()) {
            if (metadata.getDroppedColumn(column.name.bytes, column.isStatic()) != null) {
                addedAgain.add(column.name);
            }
        }
        boolean later = !younger.isEmpty() || addedAgain.stream().anyMatch(name -> metadata.getColumn(name) == null);
        int current = stored.indexOf(columns(metadata.regularAndStaticColumns()));
        Resolved now = new Resolved(metadata, headers, younger, later, current);
        resolved = now;
        return now;
    }

    private synchronized int number(List<Column> columns) {
        return stored.indexOf(columns);
    }

    private synchronized Resolved add(TableMetadata metadata, List<Column> columns) {
        if (!stored.contains(columns)) {
            storage.save(stored.size(), encode(columns));
            stored.add(columns);
        }
        return resolveAgain(metadata);
    }

    private static List<Column> columns(RegularAndStaticColumns of) {
        List<Column> columns = new ArrayList<>();
        for (ColumnMetadata column : of) {
            columns.add(new Column(column.name.bytes, column.isStatic(), column.type.toString()));
        }
        return columns;
    }

    private static SerializationHeader header(List<Column> columns, TableMetadata metadata) {
        RegularAndStaticColumns.Builder builder = RegularAndStaticColumns.builder();
        for (Column column : columns) {
            builder.add(resolve(column, metadata));
        }
        // Not for an SSTable: UnfilteredSerializer then writes lengths for skipping, by a scratch buffer of the thread
        // that cannot be used twice at once. Numbers are stored relative to the statistics, so these never differ.
        return new SerializationHeader(false, metadata, builder.build(), EncodingStats.NO_STATS);
    }

    /** The column as the table has it, or had it before it was dropped; null if it has never had it. */
    private static ColumnMetadata known(Column stored, TableMetadata metadata) {
        ColumnMetadata known = metadata.getColumn(stored.name);
        return known != null && known.isStatic() == stored.isStatic
                ? known
                : metadata.getDroppedColumn(stored.name, stored.isStatic);
    }

    /** The column as the table knows it now, unless its values were encoded in another way then. */
    private static ColumnMetadata resolve(Column stored, TableMetadata metadata) {
        ColumnMetadata known = known(stored, metadata);
        if (known != null && known.type.toString().equals(stored.type)) {
            return known;
        }
        AbstractType<?> type = TypeParser.parse(stored.type);
        if (known == null) {
            return stored.isStatic
                    ? ColumnMetadata.staticColumn(metadata, stored.name, type)
                    : ColumnMetadata.regularColumn(metadata, stored.name, type);
        }
        boolean same = type.valueLengthIfFixed() == known.type.valueLengthIfFixed()
                && type.isMultiCell() == known.type.isMultiCell()
                && type.isCounter() == known.type.isCounter();
        return same ? known : known.withNewType(type);
    }

    private static byte[] encode(List<Column> columns) {
        try (DataOutputBuffer out = new DataOutputBuffer()) {
            out.writeUnsignedVInt32(columns.size());
            for (Column column : columns) {
                ByteBufferUtil.writeWithVIntLength(column.name, out);
                out.writeBoolean(column.isStatic);
                ByteBufferUtil.writeWithVIntLength(ByteBufferUtil.bytes(column.type), out);
            }
            return out.toByteArray();
        } catch (IOException impossible) {
            throw new AssertionError(impossible);
        }
    }

    private static List<Column> decode(byte[] header) {
        try (DataInputBuffer in = new DataInputBuffer(header)) {
            int count = in.readUnsignedVInt32();
            List<Column> columns = new ArrayList<>(count);
            for (int i = 0; i < count; i++) {
                ByteBuffer name = ByteBufferUtil.readWithVIntLength(in);
                boolean isStatic = in.readBoolean();
                columns.add(new Column(name, isStatic, ByteBufferUtil.string(ByteBufferUtil.readWithVIntLength(in))));
            }
            return columns;
        } catch (IOException failure) {
            throw new IllegalStateException("a stored header does not parse", failure);
        }
    }
}

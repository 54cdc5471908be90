package io.aiodb.cassandra.format;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import org.apache.cassandra.cql3.ColumnIdentifier;
import org.apache.cassandra.db.marshal.TypeParser;
import org.apache.cassandra.db.marshal.UTF8Type;
import org.apache.cassandra.io.util.DataInputBuffer;
import org.apache.cassandra.io.util.DataInputPlus;
import org.apache.cassandra.io.util.DataOutputBuffer;
import org.apache.cassandra.io.util.DataOutputPlus;
import org.apache.cassandra.schema.ColumnMetadata;
import org.apache.cassandra.schema.CompressionParams;
import org.apache.cassandra.schema.DroppedColumn;
import org.apache.cassandra.schema.TableId;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.ByteBufferUtil;

/**
 * A table as it was when its rows were set aside for a snapshot. It may be dropped before they are written, so nothing is
 * asked of the schema then.
 *
 * @param snapshot the name of the snapshot
 * @param schema the statements that make the table again
 * @param metadata how to read its rows: its columns, those that it had before, and how its SSTables are compressed
 */
public record AutoSnapshot(String snapshot, String schema, TableMetadata metadata) {
    /** As it is stored. */
    public byte[] encode() {
        try (DataOutputBuffer out = new DataOutputBuffer()) {
            write(snapshot, out);
            write(schema, out);
            write(metadata.keyspace, out);
            write(metadata.name, out);
            out.writeBoolean(metadata.isCounter());
            Map<String, String> compression = metadata.params.compression.asMap();
            out.writeUnsignedVInt32(compression.size());
            for (Map.Entry<String, String> option : compression.entrySet()) {
                write(option.getKey(), out);
                write(option.getValue(), out);
            }
            out.writeUnsignedVInt32(metadata.columns().size());
            for (ColumnMetadata column : metadata.columns()) {
                write(column, out);
            }
            out.writeUnsignedVInt32(metadata.droppedColumns.size());
            for (DroppedColumn dropped : metadata.droppedColumns.values()) {
                write(dropped.column, out);
                out.writeLong(dropped.droppedTime);
            }
            return out.toByteArray();
        } catch (IOException impossible) {
            throw new AssertionError(impossible);
        }
    }

    /**
     * Reads what {@link #encode} has given.
     *
     * @param id of the table, which is not among the bytes
     * @throws IllegalStateException if the bytes do not parse
     */
    public static AutoSnapshot decode(TableId id, byte[] encoded) {
        try (DataInputBuffer in = new DataInputBuffer(encoded)) {
            String snapshot = readString(in);
            String schema = readString(in);
            String keyspace = readString(in);
            String name = readString(in);
            TableMetadata.Builder table =
                    TableMetadata.builder(keyspace, name, id).isCounter(in.readBoolean());
            Map<String, String> compression = new HashMap<>();
            for (int options = in.readUnsignedVInt32(); options > 0; options--) {
                compression.put(readString(in), readString(in));
            }
            table.compression(CompressionParams.fromMap(compression));
            for (int columns = in.readUnsignedVInt32(); columns > 0; columns--) {
                table.addColumn(readColumn(keyspace, name, in));
            }
            for (int columns = in.readUnsignedVInt32(); columns > 0; columns--) {
                table.recordColumnDrop(readColumn(keyspace, name, in), in.readLong());
            }
            return new AutoSnapshot(snapshot, schema, table.build());
        } catch (IOException failure) {
            throw new IllegalStateException("what is stored of the table " + id + " does not parse", failure);
        }
    }

    private static void write(ColumnMetadata column, DataOutputPlus out) throws IOException {
        ByteBufferUtil.writeWithVIntLength(column.name.bytes, out);
        write(column.kind.name(), out);
        out.writeInt(column.position());
        write(column.type.toString(), out);
    }

    private static ColumnMetadata readColumn(String keyspace, String table, DataInputPlus in) throws IOException {
        ColumnIdentifier name = ColumnIdentifier.getInterned(ByteBufferUtil.readWithVIntLength(in), UTF8Type.instance);
        ColumnMetadata.Kind kind = ColumnMetadata.Kind.valueOf(readString(in));
        int position = in.readInt();
        return new ColumnMetadata(keyspace, table, name, TypeParser.parse(readString(in)), position, kind, null);
    }

    private static void write(String text, DataOutputPlus out) throws IOException {
        ByteBufferUtil.writeWithVIntLength(ByteBufferUtil.bytes(text), out);
    }

    private static String readString(DataInputPlus in) throws IOException {
        return ByteBufferUtil.string(ByteBufferUtil.readWithVIntLength(in));
    }
}

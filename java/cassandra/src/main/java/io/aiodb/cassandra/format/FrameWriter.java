package io.aiodb.cassandra.format;

import io.aiodb.store.ValueKind;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.RangeTombstone;
import org.apache.cassandra.db.Slice;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.SerializationHelper;
import org.apache.cassandra.db.rows.UnfilteredSerializer;
import org.apache.cassandra.io.util.DataOutputBuffer;
import org.apache.cassandra.net.MessagingService;
import org.apache.cassandra.schema.TableMetadata;

/**
 * The values of the store: one frame for each update of the entry, in the order of their arrival. An update appends its
 * frame without reading; a reader merges the frames as Cassandra merges rows ({@code Rows.merge}), for which the order does
 * not matter.
 *
 * <p>Frames are those of {@link ValueKind#FRAMES}. A row's has a {@link RowCover}, whose meaning is the number of its
 * {@link SerializationHeaders header}, or it stands alone and has that number only. Behind that is the row as Cassandra
 * serializes it between nodes, and a mark of the end. The frame of a partition's deletion has its two times, that of a range
 * tombstone its bounds and its two times.
 *
 * <p>A writer belongs to one thread at a time.
 */
public final class FrameWriter {
    static final int VERSION = MessagingService.VERSION_50;
    private static final UnfilteredSerializer ROWS = UnfilteredSerializer.serializer;

    private final DataOutputBuffer body = new DataOutputBuffer();
    private final DataOutputBuffer frame = new DataOutputBuffer();

    /** The frame of a row, static or not; without a cover it stands alone. The buffer is valid until the next frame. */
    public ByteBuffer row(Row row, RowCover cover, SerializationHeaders.Numbered header, SerializationHelper helper) {
        try {
            body.clear();
            body.writeByte(cover == null ? ValueKind.ALONE : ValueKind.WITH_COVER);
            body.writeUnsignedVInt32(header.number());
            if (cover != null) {
                cover.write(body);
            }
            if (row.isStatic()) {
                ROWS.serializeStaticRow(row, helper, body, VERSION);
            } else {
                ROWS.serialize(row, helper, body, VERSION);
            }
            ROWS.writeEndOfPartition(body);
            return framed();
        } catch (IOException impossible) {
            throw new AssertionError(impossible);
        }
    }

    /** The frame of a partition's deletion. */
    public ByteBuffer deletion(DeletionTime time) {
        try {
            body.clear();
            body.writeByte(ValueKind.ALONE);
            write(time, body);
            return framed();
        } catch (IOException impossible) {
            throw new AssertionError(impossible);
        }
    }

    /** The frame of a range tombstone. */
    public ByteBuffer rangeTombstone(RangeTombstone tombstone, TableMetadata metadata) {
        try {
            body.clear();
            body.writeByte(ValueKind.ALONE);
            Slice.serializer.serialize(tombstone.deletedSlice(), body, VERSION, metadata.comparator.subtypes());
            write(tombstone.deletionTime(), body);
            return framed();
        } catch (IOException impossible) {
            throw new AssertionError(impossible);
        }
    }

    private ByteBuffer framed() throws IOException {
        frame.clear();
        frame.writeUnsignedVInt32(body.getLength());
        frame.write(body.getData(), 0, body.getLength());
        return frame.buffer();
    }

    private static void write(DeletionTime time, DataOutputBuffer out) throws IOException {
        out.writeLong(time.markedForDeleteAt());
        out.writeLong(time.localDeletionTime());
    }
}

package io.aiodb.cassandra.format;

import io.aiodb.store.ValueKind;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.cassandra.io.util.DataInputBuffer;

/**
 * Puts values together without the frames that others stand for, as {@link ValueKind#FRAMES} allows a store to do: for
 * values that are put together before the store has them. It needs to know nothing of the table.
 */
public final class FrameFolder {
    /** Enough of a frame to tell it from most others. */
    private static final int HASHED_BYTES = 64;

    /**
     * A frame.
     *
     * @param bytes all of them, with its length
     * @param meaning of the cover's parts
     * @param cover null if it stands alone
     */
    private record Frame(ByteBuffer bytes, long meaning, RowCover cover) {
        @Override
        public boolean equals(Object other) {
            return other instanceof Frame frame && bytes.equals(frame.bytes);
        }

        @Override
        public int hashCode() {
            return bytes.slice(0, Math.min(HASHED_BYTES, bytes.remaining())).hashCode();
        }
    }

    private FrameFolder() {}

    /**
     * The frames of a value and those that are appended to it, in this order. Left out is each of which others have all
     * parts from later times, and all but one of those that are the same: an update that is written again makes no value
     * longer. Values that do not parse are put together as they are: their reader judges them.
     */
    public static ByteBuffer fold(ByteBuffer value, ByteBuffer appended) {
        Set<Frame> frames = new LinkedHashSet<>();
        try {
            split(value, frames);
            split(appended, frames);
        } catch (IOException notFrames) {
            return concatenation(List.of(value, appended));
        }
        Map<Long, long[]> latest = latest(frames);
        return concatenation(frames.stream()
                .filter(frame -> frame.cover == null || !isCovered(frame.cover, latest.get(frame.meaning)))
                .map(Frame::bytes)
                .toList());
    }

    private static void split(ByteBuffer value, Set<Frame> frames) throws IOException {
        try (DataInputBuffer in = FrameReader.input(value)) {
            int start = 0;
            while (in.available() > 0) {
                long length = in.readUnsignedVInt();
                if (length < 1 || length > in.available()) {
                    throw new IOException("a frame of " + length + " bytes where there are " + in.available());
                }
                int left = in.available() - (int) length;
                boolean hasCover = in.readByte() == ValueKind.WITH_COVER;
                long meaning = hasCover ? in.readUnsignedVInt() : 0;
                RowCover cover = hasCover ? RowCover.read(in) : null;
                if (in.available() < left) {
                    throw new IOException("a frame that ends in its cover");
                }
                in.skipBytesFully(in.available() - left);
                int end = value.remaining() - left;
                frames.add(new Frame(value.slice(value.position() + start, end - start), meaning, cover));
                start = end;
            }
        }
    }

    /** For each meaning and part the latest of the times from which a frame has it. */
    private static Map<Long, long[]> latest(Set<Frame> frames) {
        Map<Long, long[]> latest = new HashMap<>();
        for (Frame frame : frames) {
            if (frame.cover != null) {
                long[] times = latest.computeIfAbsent(frame.meaning, meaning -> {
                    long[] none = new long[Long.SIZE];
                    Arrays.fill(none, Long.MIN_VALUE);
                    return none;
                });
                for (long left = frame.cover.parts(); left != 0; left &= left - 1) {
                    int part = Long.numberOfTrailingZeros(left);
                    times[part] = Math.max(times[part], frame.cover.earliest());
                }
            }
        }
        return latest;
    }

    private static boolean isCovered(RowCover cover, long[] latest) {
        for (long left = cover.parts(); left != 0; left &= left - 1) {
            if (latest[Long.numberOfTrailingZeros(left)] <= cover.latest()) {
                return false;
            }
        }
        return true;
    }

    private static ByteBuffer concatenation(List<ByteBuffer> parts) {
        ByteBuffer all = ByteBuffer.allocate(parts.stream().mapToInt(ByteBuffer::remaining).reduce(0, Math::addExact));
        parts.forEach(part -> all.put(part.duplicate()));
        return all.flip();
    }
}

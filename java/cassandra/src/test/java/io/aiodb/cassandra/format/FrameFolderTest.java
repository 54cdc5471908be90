package io.aiodb.cassandra.format;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.cassandra.fixture.Schema;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.Consumer;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.SerializationHelper;
import org.apache.cassandra.schema.TableMetadata;
import org.junit.jupiter.api.Test;

class FrameFolderTest {
    private static final int ROUNDS = 2000;
    private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);

    private final TableMetadata table = Schema.table();
    private final SerializationHeaders headers = new SerializationHeaders(new SerializationHeaders.Storage() {
        @Override
        public List<byte[]> load() {
            return List.of();
        }

        @Override
        public void save(int number, byte[] header) {}
    });

    @Test
    void whatIsFoldedReadsAsWhatIsNot() {
        long seed = new Random().nextLong();
        Random random = new Random(seed);
        for (int round = 0; round < ROUNDS; round++) {
            ByteBuffer folded = NOTHING;
            ByteBuffer all = NOTHING;
            for (int i = 1 + random.nextInt(6); i > 0; i--) {
                ByteBuffer frame = randomFrame(random);
                folded = FrameFolder.fold(folded, frame);
                all = together(all, frame);
            }
            assertEquals(text(all), text(folded), "with the seed " + seed);
            assertTrue(folded.remaining() <= all.remaining());
            assertEquals(folded, FrameFolder.fold(folded, folded), "with the seed " + seed);
        }
    }

    private ByteBuffer randomFrame(Random random) {
        int number = random.nextInt(3);
        return frame(1 + random.nextInt(4), row -> {
            switch (random.nextInt(5)) {
                case 0 -> row.delete();
                case 1 -> row.add("m", Map.of(number, "y" + number));
                case 2 -> row.noPrimaryKeyLivenessInfo().add("v", "x" + number);
                default -> row.add("v", "x" + number);
            }
        });
    }

    @Test
    void aFrameIsLeftOutForLaterOnesThatHaveAllOfItsParts() {
        ByteBuffer both = frame(2, row -> row.add("v", "x"));
        ByteBuffer laterMark = frame(3, row -> {});
        ByteBuffer laterValue = frame(4, row -> row.noPrimaryKeyLivenessInfo().add("v", "y"));
        assertEquals(together(both, laterMark), FrameFolder.fold(both, laterMark));
        assertEquals(together(laterMark, laterValue), FrameFolder.fold(together(both, laterMark), laterValue));
        assertEquals(together(laterMark, laterValue), FrameFolder.fold(together(laterMark, laterValue), both), "in any order");
    }

    @Test
    void framesOfOneTimeAndThoseThatStandAloneStay() {
        ByteBuffer first = frame(2, row -> row.add("v", "x"));
        ByteBuffer same = frame(2, row -> row.add("v", "y"));
        ByteBuffer alone = frame(1, row -> row.add("m", Map.of(1, "z")));
        assertEquals(together(first, same), FrameFolder.fold(first, same));
        assertEquals(together(alone, same), FrameFolder.fold(alone, same));
    }

    @Test
    void whatIsThereAlreadyIsThereOnce() {
        ByteBuffer alone = frame(1, row -> row.add("m", Map.of(1, "z")));
        ByteBuffer other = frame(2, row -> row.add("m", Map.of(1, "y")));
        assertEquals(together(alone, other), FrameFolder.fold(together(alone, other), alone));
    }

    /** Their reader says what is wrong with them. */
    @Test
    void whatIsNoFramesIsPutTogether() {
        ByteBuffer frame = frame(2, row -> row.add("v", "x"));
        for (byte[] wrong : new byte[][] {{0}, {5, 0}, {2, 1, 0}, {-1}}) {
            ByteBuffer value = ByteBuffer.wrap(wrong);
            assertEquals(together(value, frame), FrameFolder.fold(value, frame));
            assertEquals(together(frame, value), FrameFolder.fold(frame, value));
        }
    }

    private ByteBuffer frame(long time, Consumer<Row.SimpleBuilder> fill) {
        PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(table, 1).timestamp(time).nowInSec(1);
        fill.accept(update.row("a", 1));
        Row row = update.build().iterator().next();
        SerializationHeaders.Numbered header = headers.forWriting(table);
        ByteBuffer frame = new FrameWriter()
                .row(row, RowCover.of(row, header.header().columns(false)), header, new SerializationHelper(header.header()));
        return together(frame, NOTHING);
    }

    private String text(ByteBuffer value) {
        return FrameReader.row(value, false, headers, table).toString(table, true);
    }

    private static ByteBuffer together(ByteBuffer one, ByteBuffer other) {
        ByteBuffer all = ByteBuffer.allocate(one.remaining() + other.remaining());
        return all.put(one.duplicate()).put(other.duplicate()).flip();
    }
}

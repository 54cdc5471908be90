package io.aiodb.cassandra.format;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.aiodb.cassandra.fixture.OneStoredTable;
import io.aiodb.cassandra.fixture.Schema;
import io.aiodb.cassandra.write.UpdateWriter;
import io.aiodb.store.Durability;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.Row;
import org.junit.jupiter.api.Test;

class FrameReaderTest extends OneStoredTable {
    /** Stores give buffers of all three kinds. */
    @Test
    void rowsAreReadFromEveryKindOfBuffer() {
        PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(table, Schema.key(1));
        update.row("a", 7).add("v", "first");
        UpdateWriter.write(update.build(), storedTable, Durability.NONE);
        byte[] stored = onlyValue();
        ByteBuffer direct = ByteBuffer.allocateDirect(stored.length).put(stored).flip();
        ByteBuffer heap = ByteBuffer.wrap(stored);
        List<String> rows = new ArrayList<>();
        for (ByteBuffer value : List.of(heap, heap.asReadOnlyBuffer(), direct, direct.asReadOnlyBuffer())) {
            Row row = FrameReader.row(value, false, storedTable.headers(), table);
            rows.add(row.toString(table, true));
            assertEquals(stored.length, value.remaining());
        }
        assertEquals(List.of(rows.get(0), rows.get(0), rows.get(0), rows.get(0)), rows);
    }

    @Test
    void aRowThatIsWrittenOverIsOneFrame() {
        for (int time = 1; time <= 10; time++) {
            write(time, row -> row.add("v", "newer"));
        }
        assertEquals(1, FrameReader.count(ByteBuffer.wrap(onlyValue())));
        write(5, row -> row.add("v", "older"));
        assertEquals(1, FrameReader.count(ByteBuffer.wrap(onlyValue())));
        assertEquals("newer", text());
    }

    @Test
    void whatAnUpdateDoesNotSetIsKept() {
        write(1, row -> row.add("v", "first"));
        write(2, row -> {});
        assertEquals(2, FrameReader.count(ByteBuffer.wrap(onlyValue())));
        assertEquals("first", text());
        write(3, row -> row.noPrimaryKeyLivenessInfo().add("v", "third"));
        assertEquals(2, FrameReader.count(ByteBuffer.wrap(onlyValue())), "of the second and the third");
        assertEquals("third", text());
        assertEquals(2, row().primaryKeyLivenessInfo().timestamp());
    }

    @Test
    void updatesOfOneTimeAreComparedAsCassandraDoes() {
        write(1, row -> row.add("v", "b"));
        write(1, row -> row.add("v", "a"));
        assertEquals(2, FrameReader.count(ByteBuffer.wrap(onlyValue())));
        assertEquals("b", text());
    }

    @Test
    void whatHasSeveralCellsOrDeletesStandsAlone() {
        write(1, row -> row.add("m", Map.of(1, "one")));
        write(2, row -> row.delete());
        write(3, row -> row.add("m", Map.of(2, "two")));
        write(4, row -> row.add("m", Map.of(3, "three")).add("v", "x"));
        assertEquals(4, FrameReader.count(ByteBuffer.wrap(onlyValue())));
    }

    private void write(long time, Consumer<Row.SimpleBuilder> fill) {
        PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(table, Schema.key(1));
        fill.accept(update.timestamp(time).row("a", 7));
        UpdateWriter.write(update.build(), storedTable, Durability.NONE);
    }

    private Row row() {
        return FrameReader.row(ByteBuffer.wrap(onlyValue()), false, storedTable.headers(), table);
    }

    private String text() {
        return Schema.string(row().getCell(table.getColumn(Schema.text("v"))).buffer());
    }

    private byte[] onlyValue() {
        try (Rows rows = storedTable.table().scan(Range.all())) {
            rows.next();
            byte[] value = new byte[rows.value().remaining()];
            rows.value().get(value);
            return value;
        }
    }
}

package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.aiodb.store.Durability;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.Row;
import org.junit.jupiter.api.Test;

class FramesTest extends OneGeneration {
    /** Stores give buffers of all three kinds. */
    @Test
    void rowsAreReadFromEveryKindOfBuffer() {
        PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(table, Schema.key(1));
        update.row("a", 7).add("v", "first");
        UpdateWriter.write(update.build(), generation, Durability.NONE);
        byte[] stored = onlyValue();
        ByteBuffer direct = ByteBuffer.allocateDirect(stored.length).put(stored).flip();
        ByteBuffer heap = ByteBuffer.wrap(stored);
        List<String> rows = new ArrayList<>();
        for (ByteBuffer value : List.of(heap, heap.asReadOnlyBuffer(), direct, direct.asReadOnlyBuffer())) {
            Row row = Frames.row(value, false, generation.headers(), table);
            rows.add(row.toString(table, true));
            assertEquals(stored.length, value.remaining());
        }
        assertEquals(List.of(rows.get(0), rows.get(0), rows.get(0), rows.get(0)), rows);
    }

    private byte[] onlyValue() {
        try (Rows rows = generation.table().scan(Range.all())) {
            rows.next();
            byte[] value = new byte[rows.value().remaining()];
            rows.value().get(value);
            return value;
        }
    }
}

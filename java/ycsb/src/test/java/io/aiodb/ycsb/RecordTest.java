package io.aiodb.ycsb;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

final class RecordTest {
    private final Record record = new Record(Values.workload(3));

    @Test
    void whatIsEncodedIsDecoded() {
        byte[] value = record.encode(Values.of("field0", "a", "field1", "", "field2", "ccc"));
        assertEquals(3 * Integer.BYTES + 4, value.length);
        Map<String, String> all = Map.of("field0", "a", "field1", "", "field2", "ccc");
        assertEquals(all, Values.text(record.decoded(value, null)));
        assertEquals(Map.of("field2", "ccc"), Values.text(record.decoded(value, Set.of("field2"))));
    }

    @Test
    void anUpdateLeavesTheOtherFields() {
        byte[] value = record.encode(Values.of("field0", "a", "field1", "b", "field2", "c"));
        byte[] updated = record.update(value, Values.of("field1", "longer"));
        Map<String, String> all = Map.of("field0", "a", "field1", "longer", "field2", "c");
        assertEquals(all, Values.text(record.decoded(updated, null)));
        assertFalse(record.isWhole(Values.of("field1", "longer")));
        assertTrue(record.isWhole(Values.of("field0", "", "field1", "", "field2", "")));
    }

    @Test
    void ofOneFieldTheValueIsThatField() {
        Record single = new Record(Values.workload(1));
        byte[] value = single.encode(Values.of("field0", "25 bytes"));
        assertArrayEquals("25 bytes".getBytes(StandardCharsets.UTF_8), value);
        assertEquals(Map.of("field0", "25 bytes"), Values.text(single.decoded(value, null)));
    }

    @Test
    void recordsOfAnotherWorkloadAreNotMisread() {
        byte[] value = record.encode(Values.of("field0", "a", "field1", "b", "field2", "c"));
        for (int fields : new int[] {2, 4}) {
            Record other = new Record(Values.workload(fields));
            assertThrows(IllegalStateException.class, () -> other.decoded(value, null));
        }
        assertThrows(IllegalArgumentException.class, () -> record.encode(Values.of("field0", "a")));
        assertThrows(IllegalArgumentException.class, () -> record.update(value, Values.of("field7", "a")));
    }
}

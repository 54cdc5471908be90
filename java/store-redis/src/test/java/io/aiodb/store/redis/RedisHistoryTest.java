package io.aiodb.store.redis;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.aiodb.store.Keys;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.NavigableMap;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** Answers of several writers come in any order. */
final class RedisHistoryTest {
    private static final String GENERATION = "1";

    private final RedisHistory history = new RedisHistory(1 << 20, 10);

    private void changed(long sequence, String before) {
        history.record(sequence, List.of(new RedisHistory.Row(GENERATION, bytes("k"), bytes(before))));
    }

    /** The row as a view sees it that the server has as this value after a change. */
    private String seen(RedisHistory.View view, long number, String value) {
        NavigableMap<ByteBuffer, byte[]> found = new TreeMap<>(Keys::compare);
        found.put(ByteBuffer.wrap(bytes("k")), bytes(value));
        view.takeBack(GENERATION, number, found, null, null);
        return new String(found.get(ByteBuffer.wrap(bytes("k"))), UTF_8);
    }

    @Test
    void aChangeThatIsRecordedBeforeAnEarlierOneDoesNotHideThat() {
        try (RedisHistory.View view = history.open()) {
            view.isAt(10);
            changed(12, "after 11");
            assertEquals("after 10", seen(view, 10, "after 10"));
            changed(11, "after 10");
            assertEquals("after 10", seen(view, 12, "after 12"));
            assertEquals("after 10", seen(view, 11, "after 11"));
        }
    }

    @Test
    void whatNoViewNeedsIsForgotten() {
        RedisHistory.View first = history.open();
        first.isAt(10);
        changed(11, "after 10");
        RedisHistory.View second = history.open();
        second.isAt(11);
        changed(12, "after 11");
        assertEquals(10, history.oldest());
        first.close();
        assertEquals(11, history.oldest());
        assertEquals("after 11", seen(second, 12, "after 12"));
        second.close();
        assertEquals(Long.MAX_VALUE, history.oldest());
    }

    private static byte[] bytes(String text) {
        return text.getBytes(UTF_8);
    }
}

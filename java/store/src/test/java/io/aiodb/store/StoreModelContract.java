package io.aiodb.store;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/**
 * Random operations on a store beside a sorted map, which must always agree. A failure names the seed;
 * {@code -Daiodb.seed=N} runs it again.
 */
public abstract class StoreModelContract extends Contract {
    static final int RUNS = 6;
    private static final int STEPS = 1500;
    private static final int TABLES = 3;

    private final int runs;

    protected StoreModelContract(String kind, Map<String, String> parameters) {
        this(kind, parameters, RUNS);
    }

    /** With fewer runs, for a store whose operations take long. */
    protected StoreModelContract(String kind, Map<String, String> parameters, int runs) {
        super(kind, parameters);
        this.runs = runs;
    }

    @Test
    void agreesWithASortedMap() {
        Long chosen = Long.getLong("aiodb.seed");
        for (int run = 0; run < (chosen == null ? runs : 1); run++) {
            long seed = chosen == null ? new Random().nextLong() : chosen;
            Run running = new Run(seed, "run " + run);
            try {
                running.go();
            } catch (AssertionError | RuntimeException failure) {
                throw new AssertionError(
                        "replay with -Daiodb.seed=" + seed + "; it failed at step " + running.step, failure);
            } finally {
                running.store.close();
            }
        }
    }

    /** What was frozen when a snapshot was taken. */
    private record Frozen(Snapshot snapshot, List<NavigableMap<ByteBuffer, byte[]>> tables) {}

    private final class Run {
        private final Random random;
        private final String name;
        private final List<NavigableMap<ByteBuffer, byte[]>> model = new ArrayList<>();
        private final List<Table> tables = new ArrayList<>();
        private final List<Frozen> frozen = new ArrayList<>();
        private Store store;
        private int step;

        Run(long seed, String name) {
            this.random = new Random(seed);
            this.name = name;
            store = open(name);
            for (int number = 0; number < TABLES; number++) {
                tables.add(store.createTable("table " + number));
                model.add(new TreeMap<>(Keys::compare));
            }
        }

        void go() {
            for (step = 0; step < STEPS; step++) {
                int choice = random.nextInt(100);
                if (choice < 55) {
                    write();
                } else if (choice < 75) {
                    int number = random.nextInt(TABLES);
                    byte[] key = key();
                    assertArrayEquals(model.get(number).get(ByteBuffer.wrap(key)), tables.get(number).get(key));
                } else if (choice < 90) {
                    int number = random.nextInt(TABLES);
                    Range range = range();
                    compare(range, model.get(number), tables.get(number).scan(range));
                } else if (choice < 93) {
                    freeze();
                } else if (choice < 97) {
                    compareFrozen();
                } else if (choice < 98) {
                    int number = random.nextInt(TABLES);
                    tables.get(number).truncate();
                    model.get(number).clear();
                } else if (choice < 99) {
                    store.sync();
                } else {
                    reopen();
                }
            }
            reopen();
            for (int number = 0; number < TABLES; number++) {
                compare(Range.all(), model.get(number), tables.get(number).scan(Range.all()));
            }
        }

        private void write() {
            Batch batch = new Batch();
            int operations = random.nextInt(4) == 0 ? 1 + random.nextInt(20) : 1;
            for (int operation = 0; operation < operations; operation++) {
                add(batch, random.nextInt(TABLES));
            }
            store.write(batch, Durability.values()[random.nextInt(20) == 0 ? 0 : 1 + random.nextInt(2)]);
        }

        private void add(Batch batch, int number) {
            Table table = tables.get(number);
            NavigableMap<ByteBuffer, byte[]> rows = model.get(number);
            ByteBuffer key = ByteBuffer.wrap(key());
            int choice = random.nextInt(100);
            if (choice < 50) {
                byte[] value = value();
                batch.put(table, key, ByteBuffer.wrap(value));
                rows.put(key, value);
            } else if (choice < 75) {
                batch.delete(table, key);
                rows.remove(key);
            } else if (choice < 95) {
                byte[] operand = value();
                batch.append(table, key, ByteBuffer.wrap(operand));
                rows.merge(key, operand, Run::joined);
            } else {
                ByteBuffer to = ByteBuffer.wrap(key());
                batch.deleteRange(table, key, to);
                if (Keys.compare(key, to) < 0) {
                    rows.subMap(key, true, to, false).clear();
                }
            }
        }

        private void freeze() {
            if (frozen.size() == 4) {
                frozen.remove(random.nextInt(4)).snapshot.close();
            }
            List<NavigableMap<ByteBuffer, byte[]>> copies = new ArrayList<>();
            model.forEach(rows -> copies.add(new TreeMap<>(rows)));
            frozen.add(new Frozen(store.snapshot(), copies));
        }

        private void compareFrozen() {
            if (frozen.isEmpty()) {
                return;
            }
            Frozen one = frozen.get(random.nextInt(frozen.size()));
            int number = random.nextInt(TABLES);
            Range range = range();
            compare(range, one.tables.get(number), one.snapshot.scan(tables.get(number), range));
            byte[] key = key();
            assertArrayEquals(
                    one.tables.get(number).get(ByteBuffer.wrap(key)), one.snapshot.get(tables.get(number), key));
        }

        private void reopen() {
            frozen.clear();
            store.close();
            store = open(name);
            for (int number = 0; number < TABLES; number++) {
                tables.set(number, store.table("table " + number));
            }
        }

        private void compare(Range range, NavigableMap<ByteBuffer, byte[]> rows, Rows found) {
            NavigableMap<ByteBuffer, byte[]> expected = range.isBackward() ? rows.descendingMap() : rows;
            long left = range.limit();
            try (found) {
                for (Map.Entry<ByteBuffer, byte[]> row : expected.entrySet()) {
                    if (!range.isAboveLower(row.getKey()) || !range.isBelowUpper(row.getKey())) {
                        continue;
                    }
                    if (left-- == 0) {
                        break;
                    }
                    assertTrue(found.next(), "a row is missing");
                    assertEquals(row.getKey(), found.key());
                    byte[] value = range.isKeysOnly() ? new byte[0] : row.getValue();
                    assertEquals(ByteBuffer.wrap(value), found.value());
                }
                assertFalse(found.next(), "a row too many");
            }
        }

        private Range range() {
            Range range = Range.all();
            if (random.nextInt(3) > 0) {
                range = random.nextBoolean() ? range.from(key()) : range.after(key());
            }
            if (random.nextInt(3) > 0) {
                range = random.nextBoolean() ? range.to(key()) : range.before(key());
            }
            if (random.nextBoolean()) {
                range = range.backward();
            }
            if (random.nextInt(4) == 0) {
                range = range.keysOnly();
            }
            return random.nextBoolean() ? range.limit(random.nextInt(30)) : range;
        }

        /** Few enough keys that they meet again, some of them long, some of them prefixes of others. */
        private byte[] key() {
            byte[] key = new byte[random.nextInt(20) == 0 ? 1 + random.nextInt(400) : 1 + random.nextInt(3)];
            for (int at = 0; at < Math.min(3, key.length); at++) {
                key[at] = new byte[] {0, 'a', 'b', (byte) 128, (byte) 255}[random.nextInt(5)];
            }
            return key;
        }

        private byte[] value() {
            byte[] value = new byte[random.nextInt(50) == 0 ? random.nextInt(100_000) : random.nextInt(200)];
            random.nextBytes(value);
            return value;
        }

        private static byte[] joined(byte[] first, byte[] second) {
            return ByteBuffer.allocate(first.length + second.length).put(first).put(second).array();
        }
    }
}

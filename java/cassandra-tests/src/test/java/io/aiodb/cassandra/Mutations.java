package io.aiodb.cassandra;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * Random statements on a small space of keys, so that they meet: writes and all kinds of deletes with timestamps in any
 * order, ties included. The idea is that of Cassandra's Harry.
 */
final class Mutations {
    static final String COLUMNS = "a int, b text, v int, w text, s set<int>, m map<int, text>, f frozen<list<int>>, "
            + "st int static, su set<int> static";

    private static final int PARTITIONS = 3;
    private static final int ROWS = 5;
    private static final List<String> TEXTS = List.of("''", "'a'", "'ab'", "'b'");

    /** Few, so that many statements have the same one. */
    private static final int TIMESTAMPS = 200;

    /** Seconds; far apart and far from the test's length, so that what is left of them compares. */
    private static final List<Integer> TIMES_TO_LIVE = List.of(100_000, 200_000, 300_000);

    private final Random random;

    /**
     * How many statements had a time to live. Their timestamps are unique, since what wins a tie between cells that
     * expire depends on the second of the write.
     */
    private long expiring;

    Mutations(Random random) {
        this.random = random;
    }

    /** One statement, or a batch of some. */
    String mutation(String table) {
        if (random.nextInt(8) > 0) {
            return single(table);
        }
        List<String> statements = new ArrayList<>();
        for (int count = 1 + random.nextInt(5); count > 0; count--) {
            statements.add(single(table));
        }
        String kind = random.nextBoolean() ? "" : "UNLOGGED ";
        return "BEGIN " + kind + "BATCH " + String.join("; ", statements) + "; APPLY BATCH";
    }

    private String single(String table) {
        int choice = random.nextInt(18);
        String into = "INSERT INTO " + table;
        return switch (choice) {
            case 0, 1, 2 -> into + " (id, a, b, v, w) VALUES (" + partition() + ", " + row() + ", " + text() + ", "
                    + number() + ", " + text() + ")" + using();
            case 3 -> into + " (id, a, b, s, m, f) VALUES (" + partition() + ", " + row() + ", " + text() + ", " + set()
                    + ", " + map() + ", [" + number() + "])" + using();
            case 4 -> into + " (id, a, b) VALUES (" + partition() + ", " + row() + ", " + text() + ")" + using();
            case 5 -> update(table) + "SET v = " + orNull(number()) + ", w = " + orNull(text()) + oneRow();
            case 6 -> update(table) + "SET s = s " + sign() + " " + set() + ", m[" + number() + "] = " + orNull(text())
                    + oneRow();
            case 7 -> update(table) + "SET m = " + (random.nextBoolean() ? map() : "m + " + map()) + oneRow();
            case 8 -> update(table) + "SET st = " + orNull(number()) + onePartition();
            case 9 -> update(table) + "SET su = su " + sign() + " " + set() + onePartition();
            case 10 -> delete(table, "") + onePartition();
            case 11, 12 -> delete(table, "") + oneRow();
            case 13 -> delete(table, "v, s ") + oneRow();
            case 14 -> delete(table, "m[" + number() + "] ") + oneRow();
            case 15 -> delete(table, "st ") + onePartition();
            case 16 -> delete(table, "") + onePartition() + " AND a = " + row();
            default -> delete(table, "") + onePartition() + " AND " + slice();
        };
    }

    /** One query: a partition, a slice, a row, columns; forwards or backwards; in pages of any size. */
    String query(String table) {
        String columns = switch (random.nextInt(4)) {
            case 0 -> "a, b, v, writetime(v), ttl(v), w, writetime(w), ttl(w)";
            case 1 -> "st, su, m, s";
            case 2 -> "v";
            default -> "*";
        };
        String order = random.nextBoolean() ? "" : " ORDER BY a DESC, b ASC";
        String limit = random.nextInt(4) > 0 ? "" : " LIMIT " + (1 + random.nextInt(5));
        String select = "SELECT " + columns + " FROM " + table;
        return switch (random.nextInt(8)) {
            case 0 -> select + limit;
            case 1 -> select + oneRow();
            case 2 -> select + onePartition() + " AND a = " + row() + order + limit;
            case 3, 4 -> select + onePartition() + " AND " + slice() + order + limit;
            case 5 -> select + onePartition() + " AND a IN (" + row() + ", " + row() + ")" + limit;
            case 6 -> "SELECT DISTINCT id, st FROM " + table;
            default -> select + onePartition() + order + limit;
        };
    }

    int page() {
        return random.nextInt(3) > 0 ? 5000 : 1 + random.nextInt(6);
    }

    private String update(String table) {
        return "UPDATE " + table + using() + " ";
    }

    private String delete(String table, String columns) {
        return "DELETE " + columns + "FROM " + table + " USING TIMESTAMP " + timestamp();
    }

    private String using() {
        if (random.nextInt(4) > 0) {
            return " USING TIMESTAMP " + timestamp();
        }
        // In the midst of the others, which are even. The factor is prime, so that each number comes once.
        long unique = 2 * (expiring++ * 7919 % (TIMESTAMPS * 100)) + 1;
        return " USING TIMESTAMP " + unique + " AND TTL " + TIMES_TO_LIVE.get(random.nextInt(TIMES_TO_LIVE.size()));
    }

    private long timestamp() {
        return 200L * random.nextInt(TIMESTAMPS);
    }

    private String onePartition() {
        return " WHERE id = " + partition();
    }

    private String oneRow() {
        return onePartition() + " AND a = " + row() + " AND b = " + text();
    }

    private String slice() {
        String from = random.nextBoolean() ? ">" : ">=";
        String to = random.nextBoolean() ? "<" : "<=";
        return switch (random.nextInt(5)) {
            case 0 -> "a " + from + " " + row();
            case 1 -> "a " + to + " " + row();
            case 2 -> "a = " + row() + " AND b " + from + " " + text();
            case 3 -> "a = " + row() + " AND b " + to + " " + text();
            default -> "a " + from + " " + row() + " AND a " + to + " " + row();
        };
    }

    private int partition() {
        return random.nextInt(PARTITIONS);
    }

    private int row() {
        return random.nextInt(ROWS);
    }

    private String number() {
        return Integer.toString(random.nextInt(4));
    }

    private String text() {
        return TEXTS.get(random.nextInt(TEXTS.size()));
    }

    private String set() {
        return "{" + random.nextInt(3) + ", " + (3 + random.nextInt(3)) + "}";
    }

    private String map() {
        return "{" + random.nextInt(2) + ": " + text() + ", " + (2 + random.nextInt(2)) + ": " + text() + "}";
    }

    private String orNull(String value) {
        return random.nextInt(5) > 0 ? value : "null";
    }

    private String sign() {
        return random.nextBoolean() ? "+" : "-";
    }
}

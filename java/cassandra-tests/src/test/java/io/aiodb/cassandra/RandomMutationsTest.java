package io.aiodb.cassandra;

import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Random mutations of two tables that differ in their memtable only, and queries whose answers must be the same. A
 * failure names the seed; {@code -Daiodb.seed=N} runs it again.
 */
@ExtendWith(SharedNode.class)
final class RandomMutationsTest {
    private static final int RUNS = Integer.getInteger("aiodb.runs", 4);
    private static final int STEPS = Integer.getInteger("aiodb.steps", 250);

    /** After a restart or a change of memtables this many queries look for differences. */
    private static final int QUERIES = 60;

    @Test
    void sameAnswers(Nodes nodes) {
        Long chosen = Long.getLong("aiodb.seed");
        try (Sides sides = new Sides(nodes, "random")) {
            for (int run = 0; run < (chosen == null ? RUNS : 1); run++) {
                long seed = chosen == null ? new Random().nextLong() : chosen;
                try {
                    run(sides, new Random(seed), "run" + run);
                } catch (AssertionError | RuntimeException failure) {
                    throw new AssertionError("replay with -Daiodb.seed=" + seed, failure);
                }
            }
        }
    }

    private static void run(Sides sides, Random random, String table) {
        Mutations mutations = new Mutations(random);
        String order = random.nextBoolean() ? "a ASC, b DESC" : "a DESC, b ASC";
        sides.succeed("CREATE TABLE " + table + " (id int, " + Mutations.COLUMNS
                + ", PRIMARY KEY (id, a, b)) WITH CLUSTERING ORDER BY (" + order + ") AND MEMTABLE");
        int restart = random.nextInt(2 * STEPS);
        int flush = random.nextInt(2 * STEPS);
        int away = random.nextInt(2 * STEPS);
        int back = away + random.nextInt(STEPS);
        for (int step = 0; step < STEPS; step++) {
            sides.succeed(mutations.mutation(table));
            query(sides, mutations, table);
            if (step == restart) {
                sides.restart();
            } else if (step == flush) {
                sides.flush();
            } else if (step == away) {
                sides.move(table, memtable -> "trie");
            } else if (step == back) {
                sides.move(table, memtable -> memtable);
            } else {
                continue;
            }
            for (int query = 0; query < QUERIES; query++) {
                query(sides, mutations, table);
            }
        }
    }

    private static void query(Sides sides, Mutations mutations, String table) {
        int page = mutations.page();
        sides.execute(mutations.query(table), statement -> statement.setPageSize(page));
    }
}

package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.opentest4j.MultipleFailuresError;

/**
 * Every form of CQL statement on two tables that differ in their memtable only: all answers must be the same. The
 * tables stay as they are after the first test, so that the later ones can read them again.
 */
@ExtendWith(SharedNode.class)
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
final class StatementsTest {
    private static final List<String> NAMES = List.of(
            "types", "keys", "statics", "collections", "structures", "counters", "times", "deletes", "conditions",
            "batches", "changes", "json", "functions", "refused");

    private static Sides sides;

    @BeforeAll
    static void connect(Nodes nodes) {
        sides = new Sides(nodes, "statements");
    }

    @AfterAll
    static void disconnect() {
        sides.close();
    }

    static List<String> names() {
        return NAMES;
    }

    @Order(1)
    @ParameterizedTest
    @MethodSource("names")
    void sameAnswers(String name) throws InterruptedException {
        List<AssertionError> failures = new ArrayList<>();
        for (Script.Step step : Script.read(name).steps()) {
            Thread.sleep(1000L * step.sleepSeconds());
            if (step.flush()) {
                sides.flush();
            }
            collect(failures, () -> check(step, sides.execute(step.statement(), page(step))));
        }
        throwAll(failures);
    }

    /** One difference does not hide the next one. */
    private static void collect(List<AssertionError> failures, Runnable step) {
        try {
            step.run();
        } catch (AssertionError failure) {
            failures.add(failure);
        }
    }

    private static void throwAll(List<AssertionError> failures) {
        if (!failures.isEmpty()) {
            throw new MultipleFailuresError(null, failures);
        }
    }

    private static void check(Script.Step step, Answer answer) {
        if (step.message() != null) {
            assertNotNull(answer.error(), () -> "it succeeds on both sides: " + step.statement());
            assertTrue(answer.error().contains(step.message()), () -> answer.error() + ": " + step.statement());
            return;
        }
        assertEquals(null, answer.error(), step.statement());
        if (step.selects()) {
            assertEquals(step.empty(), answer.rows().isEmpty(), () -> "empty: " + step.statement());
        }
    }

    @Order(2)
    @Test
    void sameAfterKill() {
        sides.restart();
        readAgain("a kill");
    }

    @Order(3)
    @Test
    void sameAfterFlush() {
        sides.flush();
        readAgain("a flush");
        sides.restart();
        readAgain("a flush and a kill");
    }

    @Order(4)
    @Test
    void sameAfterCompaction() {
        sides.compact();
        readAgain("a compaction");
    }

    private static void readAgain(String after) {
        int[] read = new int[1];
        List<AssertionError> failures = new ArrayList<>();
        for (String name : NAMES) {
            for (Script.Step step : Script.read(name).steps()) {
                if (step.selects() && step.message() == null) {
                    collect(failures, () -> read[0] +=
                            sides.execute(step.statement(), page(step)).rows().size());
                }
            }
        }
        throwAll(failures);
        assertNotEquals(0, read[0], "nothing was read after " + after);
    }

    private static Function<SimpleStatement, SimpleStatement> page(Script.Step step) {
        return statement -> statement.setPageSize(step.page());
    }
}

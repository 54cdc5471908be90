package io.aiodb.cassandra;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.DriverException;
import com.datastax.oss.driver.api.core.cql.ColumnDefinition;
import com.datastax.oss.driver.api.core.cql.ResultSet;
import com.datastax.oss.driver.api.core.cql.Row;
import com.datastax.oss.driver.api.core.cql.Statement;
import java.util.ArrayList;
import java.util.List;

/**
 * All that a client learns from a statement: the rows, where pages end, warnings, or the error.
 *
 * @param error null if the statement succeeded
 */
record Answer(List<String> rows, List<Integer> pages, List<String> warnings, String error) {
    /** Seconds to live go down while a test runs: tests use multiples of this, and compare those. */
    private static final int TIME_TO_LIVE_UNIT = 10_000;

    static Answer of(CqlSession session, Statement<?> statement) {
        try {
            return read(session.execute(statement));
        } catch (DriverException failure) {
            String error = failure.getClass().getSimpleName() + ": " + failure.getMessage();
            return new Answer(List.of(), List.of(), List.of(), error);
        }
    }

    private static Answer read(ResultSet result) {
        List<String> rows = new ArrayList<>();
        List<Integer> pages = new ArrayList<>();
        do {
            int count = result.getAvailableWithoutFetching();
            for (int position = 0; position < count; position++) {
                rows.add(format(result.one()));
            }
            pages.add(count);
        } while (!result.isFullyFetched() && fetch(result));
        return new Answer(rows, pages, List.copyOf(result.getExecutionInfo().getWarnings()), null);
    }

    /** Asking for the next row, without taking it, fetches the next page. */
    private static boolean fetch(ResultSet result) {
        result.iterator().hasNext();
        return true;
    }

    private static String format(Row row) {
        StringBuilder text = new StringBuilder();
        for (ColumnDefinition column : row.getColumnDefinitions()) {
            String name = column.getName().asInternal();
            text.append(name).append('=');
            text.append(name.startsWith("ttl(") ? remaining(row, name) : row.codecRegistry()
                    .codecFor(column.getType())
                    .format(row.getObject(column.getName())));
            text.append("  ");
        }
        return text.toString();
    }

    private static String remaining(Row row, String name) {
        Object value = row.getObject('"' + name + '"');
        if (value instanceof Integer seconds) {
            return "about " + Math.round((double) seconds / TIME_TO_LIVE_UNIT) * TIME_TO_LIVE_UNIT;
        }
        return value == null ? "null" : "several";
    }

    /** The same without the name of the keyspace, which messages tell. */
    Answer in(String keyspace) {
        return new Answer(
                rows,
                pages,
                warnings.stream().map(warning -> warning.replace(keyspace, "KEYSPACE")).toList(),
                error == null ? null : error.replace(keyspace, "KEYSPACE"));
    }

    @Override
    public String toString() {
        return error != null ? error : String.join("\n", rows) + "\n" + rows.size() + " rows, pages of " + pages
                + (warnings.isEmpty() ? "" : ", warnings: " + warnings);
    }
}

package io.aiodb.store;

import java.nio.ByteBuffer;

/**
 * The rows of a range, one after the other.
 *
 * <pre>{@code
 * try (Rows rows = table.scan(Range.all())) {
 *     while (rows.next()) {
 *         use(rows.key(), rows.value());
 *     }
 * }
 * }</pre>
 */
public interface Rows extends AutoCloseable {
    /** Goes to the next row, at first to the first one. False at the end, and from then on. */
    boolean next();

    /** The row's key: a read-only buffer that holds these bytes until the next call of {@link #next} or {@link #close}. */
    ByteBuffer key();

    /** The row's value, as {@link #key}; empty where the range asks for keys only. */
    ByteBuffer value();

    /** Releases what the scan holds. Closing twice does nothing. */
    @Override
    void close();
}

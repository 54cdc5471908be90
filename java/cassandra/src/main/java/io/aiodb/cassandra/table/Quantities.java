package io.aiodb.cassandra.table;

import java.util.Optional;
import org.apache.cassandra.config.DataStorageSpec;
import org.apache.cassandra.config.DurationSpec;
import org.apache.cassandra.exceptions.ConfigurationException;

/** Values of parameters as they stand elsewhere in {@code cassandra.yaml}. What makes no sense is refused with what does. */
final class Quantities {
    private Quantities() {}

    static long milliseconds(String name, String value) {
        try {
            long milliseconds = new DurationSpec.LongMillisecondsBound(value).toMilliseconds();
            if (milliseconds > 0) {
                return milliseconds;
            }
        } catch (RuntimeException notOne) {
            // Reported below, in the same words.
        }
        throw refused(name, value, "give a duration, as 10s or 500ms");
    }

    static long bytes(String name, String value) {
        try {
            return new DataStorageSpec.LongBytesBound(value).toBytes();
        } catch (RuntimeException notOne) {
            throw refused(name, value, "give an amount, as 256MiB");
        }
    }

    /** Nothing if it is no number in this range. */
    static Optional<Integer> number(String value, int least, int most) {
        try {
            int number = Integer.parseInt(value.strip());
            return number >= least && number <= most ? Optional.of(number) : Optional.empty();
        } catch (NumberFormatException notOne) {
            return Optional.empty();
        }
    }

    static ConfigurationException refused(String name, String value, String instead) {
        return new ConfigurationException("memtable: " + name + " = " + value + ": " + instead);
    }
}

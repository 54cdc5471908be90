package io.aiodb.store;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/** Parameters of a store as a configuration names them. Parameters that no store asks for are refused. */
public final class Parameters {
    private final String store;
    private final Map<String, String> given;
    private final Set<String> known = new HashSet<>();

    /** @param store the name of the store that they are for */
    public Parameters(String store, Map<String, String> given) {
        this.store = store;
        this.given = Map.copyOf(given);
    }

    /** A whole number in a range. */
    public long number(String name, long fallback, long least, long most) {
        known.add(name);
        String value = given.get(name);
        if (value == null) {
            return fallback;
        }
        try {
            long number = Long.parseLong(value);
            if (number >= least && number <= most) {
                return number;
            }
        } catch (NumberFormatException notOne) {
            // Reported below, in the same words.
        }
        throw new StoreException.Configuration(
                store + ": " + name + " = " + value + ": give a whole number from " + least + " to " + most);
    }

    /** Any text. */
    public String text(String name, String fallback) {
        known.add(name);
        return given.getOrDefault(name, fallback);
    }

    /** The first line of the file that a parameter names; null where none is named. */
    public String firstLine(String name) {
        String file = text(name, null);
        if (file == null) {
            return null;
        }
        try {
            return Files.readAllLines(Path.of(file)).stream().findFirst().orElse("");
        } catch (IOException failure) {
            throw new StoreException.Configuration(
                    store + ": cannot read the " + name + " " + file + ": " + failure, failure);
        }
    }

    /** One of the constants of an enumeration, in small letters. */
    public <E extends Enum<E>> E choice(String name, E fallback) {
        known.add(name);
        String value = given.get(name);
        if (value == null) {
            return fallback;
        }
        E[] constants = fallback.getDeclaringClass().getEnumConstants();
        return Arrays.stream(constants)
                .filter(constant -> spelled(constant).equals(value))
                .findFirst()
                .orElseThrow(() -> new StoreException.Configuration(store + ": " + name + " = " + value
                        + ": give one of " + Arrays.stream(constants).map(Parameters::spelled).toList()));
    }

    /** Refuses parameters that were not asked for. Called when all known ones have been. */
    public void refuseOthers() {
        for (String name : new TreeSet<>(given.keySet())) {
            if (!known.contains(name)) {
                throw new StoreException.Configuration(
                        store + ": there is no parameter " + name + ": it knows " + new TreeSet<>(known));
            }
        }
    }

    private static String spelled(Enum<?> constant) {
        return constant.name().toLowerCase(Locale.ROOT);
    }
}

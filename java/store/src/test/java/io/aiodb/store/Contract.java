package io.aiodb.store;

import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.io.TempDir;

/** What the contracts have in common: stores of one kind, each in a directory of its own. */
abstract class Contract {
    /** The kind of the store, as in {@link Stores#open}. */
    final String kind;

    /** Parameters that keep the store small. */
    final Map<String, String> parameters;

    @TempDir
    Path directory;

    Contract(String kind, Map<String, String> parameters) {
        this.kind = kind;
        this.parameters = parameters;
    }

    /** Opens the store in a directory of this name. */
    final Store open(String name) {
        return Stores.open(kind, directory.resolve(name), parameters);
    }
}

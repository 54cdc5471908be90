package io.aiodb.store;

import java.nio.file.Path;
import java.util.Map;
import java.util.Objects;
import java.util.ServiceLoader;
import java.util.TreeSet;

/** Opens stores by the names of their kinds. */
public final class Stores {
    private Stores() {}

    /**
     * Opens the store of a kind in a directory, or makes one there.
     *
     * @param name the kind: whatever {@link StoreProvider}s are on the class path
     * @param parameters what the provider's documentation lists
     */
    public static Store open(String name, Path directory, Map<String, String> parameters) {
        Objects.requireNonNull(directory, "directory");
        TreeSet<String> names = new TreeSet<>();
        for (StoreProvider provider : ServiceLoader.load(StoreProvider.class, Stores.class.getClassLoader())) {
            if (provider.name().equals(name)) {
                return provider.open(directory, new Parameters(name, parameters));
            }
            names.add(provider.name());
        }
        throw new StoreException.Configuration(
                "there is no store of kind " + name + ": the class path has " + names + "; add the jar that brings it");
    }
}

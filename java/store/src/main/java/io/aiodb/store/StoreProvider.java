package io.aiodb.store;

import java.nio.file.Path;

/** A kind of store, found through {@link java.util.ServiceLoader}. */
public interface StoreProvider {
    /** The name by which configurations call it. */
    String name();

    /**
     * Opens the store in a directory, or makes one there; the directory's parents are made too.
     *
     * @throws StoreException.Configuration if a parameter is unknown or makes no sense, or if the directory holds
     *     something else
     * @throws StoreException.InUse if the store is open already, here or in another process
     * @throws StoreException.NativeLibrary if it cannot run on this machine
     */
    Store open(Path directory, Parameters parameters);
}

package io.aiodb.cassandra;

import io.aiodb.store.Durability;
import io.aiodb.store.Stores;
import java.nio.file.Path;
import java.util.Map;

/** A store that is opened and closed by a test, without a node. */
final class TemporaryStore implements AutoCloseable {
    private final Path directory;
    private OpenStore open;

    TemporaryStore(Path directory) {
        this.directory = directory;
        open = openAgain();
    }

    OpenStore open() {
        return open;
    }

    /** Ends the store and begins anew, as a restart of the node does. */
    OpenStore restart() {
        open.store().close();
        open = openAgain();
        return open;
    }

    private OpenStore openAgain() {
        Configuration configuration = new Configuration("aiodb", directory, Durability.INTERVAL, Map.of());
        return new OpenStore(configuration, Stores.open("aiodb", directory, Map.of("segment_bytes", "1048576")));
    }

    @Override
    public void close() {
        open.store().close();
    }
}

package io.aiodb.store.lmdb;

import io.aiodb.store.StoreContracts;
import java.util.Map;

/** LMDB does what every store must do. */
class LmdbContractTest extends StoreContracts {
    LmdbContractTest() {
        super("lmdb");
    }

    @Override
    protected Map<String, String> parameters() {
        return Map.of("map_bytes", "1073741824");
    }
}

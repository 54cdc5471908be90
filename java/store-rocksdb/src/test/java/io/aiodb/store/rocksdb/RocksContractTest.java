package io.aiodb.store.rocksdb;

import io.aiodb.store.StoreContracts;
import java.util.Map;

/** RocksDB does what every store must do. */
class RocksContractTest extends StoreContracts {
    RocksContractTest() {
        super("rocksdb");
    }

    @Override
    protected Map<String, String> parameters() {
        return Map.of();
    }
}

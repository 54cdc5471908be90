package io.aiodb.store.rocksdb;

import io.aiodb.store.StoreConcurrencyContract;
import io.aiodb.store.StoreContract;
import io.aiodb.store.StoreModelContract;
import java.util.Map;
import org.junit.jupiter.api.Nested;

/** RocksDB does what every store must do. */
class RocksContractTest {
    private static final String KIND = "rocksdb";
    private static final Map<String, String> SMALL = Map.of();

    @Nested
    class Functions extends StoreContract {
        Functions() {
            super(KIND, SMALL);
        }
    }

    @Nested
    class Model extends StoreModelContract {
        Model() {
            super(KIND, SMALL);
        }
    }

    @Nested
    class Concurrency extends StoreConcurrencyContract {
        Concurrency() {
            super(KIND, SMALL);
        }
    }
}

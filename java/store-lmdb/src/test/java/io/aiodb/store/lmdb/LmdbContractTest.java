package io.aiodb.store.lmdb;

import io.aiodb.store.StoreConcurrencyContract;
import io.aiodb.store.StoreContract;
import io.aiodb.store.StoreModelContract;
import java.util.Map;
import org.junit.jupiter.api.Nested;

/** LMDB does what every store must do. */
class LmdbContractTest {
    private static final String KIND = "lmdb";
    private static final Map<String, String> SMALL = Map.of("map_bytes", "1073741824");

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

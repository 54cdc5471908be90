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
        @Override
        protected String kind() {
            return KIND;
        }

        @Override
        protected Map<String, String> parameters() {
            return SMALL;
        }
    }

    @Nested
    class Model extends StoreModelContract {
        @Override
        protected String kind() {
            return KIND;
        }

        @Override
        protected Map<String, String> parameters() {
            return SMALL;
        }
    }

    @Nested
    class Concurrency extends StoreConcurrencyContract {
        @Override
        protected String kind() {
            return KIND;
        }

        @Override
        protected Map<String, String> parameters() {
            return SMALL;
        }
    }
}

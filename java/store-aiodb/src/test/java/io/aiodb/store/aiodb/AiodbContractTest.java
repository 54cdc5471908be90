package io.aiodb.store.aiodb;

import io.aiodb.store.StoreConcurrencyContract;
import io.aiodb.store.StoreContract;
import io.aiodb.store.StoreModelContract;
import java.util.Map;
import org.junit.jupiter.api.Nested;

/** aiodb does what every store must do. */
class AiodbContractTest {
    private static final String KIND = "aiodb";
    private static final Map<String, String> SMALL = Map.of("segment_bytes", "4194304");

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
    class Compressed extends StoreModelContract {
        @Override
        protected String kind() {
            return KIND;
        }

        @Override
        protected Map<String, String> parameters() {
            return Map.of("segment_bytes", "4194304", "compression", "zstd", "cache_bytes", "1000000");
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

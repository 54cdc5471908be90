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
    class Compressed extends StoreModelContract {
        Compressed() {
            super(
                    KIND,
                    Map.of(
                            "segment_bytes", "4194304",
                            "compression", "zstd",
                            "cache_bytes", "1000000",
                            "cache_writes", "yes",
                            "max_open_files", "8"));
        }
    }

    @Nested
    class Concurrency extends StoreConcurrencyContract {
        Concurrency() {
            super(KIND, SMALL);
        }
    }
}

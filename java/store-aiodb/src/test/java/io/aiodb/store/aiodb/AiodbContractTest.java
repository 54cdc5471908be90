package io.aiodb.store.aiodb;

import io.aiodb.store.StoreContracts;
import io.aiodb.store.StoreModelContract;
import java.util.Map;
import org.junit.jupiter.api.Nested;

/** aiodb does what every store must do. */
class AiodbContractTest extends StoreContracts {
    private static final String KIND = "aiodb";

    AiodbContractTest() {
        super(KIND);
    }

    @Override
    protected Map<String, String> parameters() {
        return Map.of("segment_bytes", "4194304");
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
}

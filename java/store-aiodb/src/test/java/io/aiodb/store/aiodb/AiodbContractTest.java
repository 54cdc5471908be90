package io.aiodb.store.aiodb;

import io.aiodb.store.StoreContracts;
import io.aiodb.store.StoreModelContract;
import java.util.Map;
import org.junit.jupiter.api.Nested;

/** aiodb does what every store must do, with each index. */
class AiodbContractTest extends StoreContracts {
    private static final String KIND = "aiodb";

    AiodbContractTest() {
        super(KIND);
    }

    @Override
    protected Map<String, String> parameters() {
        return Map.of("segment_bytes", "4194304", "index", "lmdb");
    }

    /** The same with sorted runs. */
    @Nested
    class Lsm extends StoreContracts {
        Lsm() {
            super(KIND);
        }

        @Override
        protected Map<String, String> parameters() {
            return Map.of("segment_bytes", "4194304", "index", "lsm");
        }
    }

    @Nested
    class Compressed extends StoreModelContract {
        Compressed() {
            super(KIND, compressed("lmdb"));
        }
    }

    @Nested
    class CompressedLsm extends StoreModelContract {
        CompressedLsm() {
            super(KIND, compressed("lsm"));
        }
    }

    /** The index of sorted runs is compressed, with the values in it. */
    @Nested
    class CompressedBlocks extends StoreModelContract {
        CompressedBlocks() {
            super(
                    KIND,
                    Map.of(
                            "segment_bytes", "4194304",
                            "index", "lsm",
                            "inline_bytes", "1024",
                            "block_compression", "lz4"));
        }
    }

    private static Map<String, String> compressed(String index) {
        return Map.of(
                "segment_bytes", "4194304",
                "memory_bytes", "67108864",
                "compression", "zstd",
                "cache_bytes", "1000000",
                "cache_writes", "yes",
                "max_open_files", "8",
                "index", index);
    }
}

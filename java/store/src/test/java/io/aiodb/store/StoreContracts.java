package io.aiodb.store;

import java.util.Map;
import org.junit.jupiter.api.Nested;

/** All that every store must do. A module of a store extends this and says which kind it is. */
public abstract class StoreContracts {
    private final String kind;
    private final int modelRuns;

    protected StoreContracts(String kind) {
        this(kind, StoreModelContract.RUNS);
    }

    /** With fewer runs of random operations, for a store whose operations take long. */
    protected StoreContracts(String kind, int modelRuns) {
        this.kind = kind;
        this.modelRuns = modelRuns;
    }

    /** Parameters that keep the stores small, and say where they are. */
    protected abstract Map<String, String> parameters();

    @Nested
    class Functions extends StoreContract {
        Functions() {
            super(StoreContracts.this.kind, parameters());
        }
    }

    @Nested
    class Modes extends StoreModesContract {
        Modes() {
            super(StoreContracts.this.kind, parameters());
        }
    }

    @Nested
    class Model extends StoreModelContract {
        Model() {
            super(StoreContracts.this.kind, parameters(), modelRuns);
        }
    }

    @Nested
    class Concurrency extends StoreConcurrencyContract {
        Concurrency() {
            super(StoreContracts.this.kind, parameters());
        }
    }
}

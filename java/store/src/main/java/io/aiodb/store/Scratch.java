package io.aiodb.store;

import java.util.function.Consumer;

/** One batch for each thread, for writes of single rows. */
final class Scratch {
    /** A thread does not hold on to more than this. */
    private static final int MAX_KEPT_BYTES = 1 << 20;

    private static final ThreadLocal<Batch> BATCH = ThreadLocal.withInitial(Batch::new);

    private Scratch() {}

    static void write(Store store, Durability durability, Consumer<Batch> fill) {
        Batch batch = BATCH.get();
        try {
            fill.accept(batch);
            store.write(batch, durability);
        } finally {
            batch.clear();
            if (batch.capacityBytes() > MAX_KEPT_BYTES) {
                BATCH.remove();
            }
        }
    }
}

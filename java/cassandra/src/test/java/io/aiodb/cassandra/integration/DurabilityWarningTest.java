package io.aiodb.cassandra.integration;

import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.cassandra.table.StoreConfiguration;
import io.aiodb.store.Durability;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.cassandra.config.Config.CommitLogSync;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Rows that a power cut may take, beside a commit log that promises more, are warned of. */
class DurabilityWarningTest {
    @TempDir
    Path directory;

    @Test
    void whatCanBeLostBesideASyncedCommitLogIsWarnedOf() {
        for (CommitLogSync sync : List.of(CommitLogSync.batch, CommitLogSync.group)) {
            String warning = DurabilityWarning.warning("mine", configuration(Durability.INTERVAL), sync);
            for (String word : List.of(
                    "commitlog_sync: " + sync,
                    "mine with durability: interval",
                    "lightweight transactions",
                    "give mine the parameter durability: sync")) {
                assertTrue(warning.contains(word), warning);
            }
            assertNull(DurabilityWarning.warning("mine", configuration(Durability.SYNC), sync));
        }
        assertNull(DurabilityWarning.warning("mine", configuration(Durability.INTERVAL), CommitLogSync.periodic));
    }

    private StoreConfiguration configuration(Durability durability) {
        return new StoreConfiguration("aiodb", directory, durability, Map.of());
    }
}

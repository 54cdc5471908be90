package io.aiodb.ycsb;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class ArgumentsTest {
    private static final String CORE_WORKLOAD = "workload=site.ycsb.workloads.CoreWorkload";

    @Test
    void whatIsAskedForReachesTheClientUnchanged(@TempDir Path directory) throws Exception {
        Path workload = Files.writeString(directory.resolve("w"), "recordcount=10\n" + CORE_WORKLOAD + "\n");
        List<String> arguments = Arguments.ofClient(List.of(
                "run", "lmdb", "-P", workload.toString(), "-p", "operationcount=5", "-threads", "2", "-target", "100", "-s"));
        List<String> expected = List.of(
                "-t", "-db", StoreClient.class.getName(), "-p", "store=lmdb", "-P", workload.toString(), "-p",
                "operationcount=5", "-threads", "2", "-target", "100", "-s");
        assertEquals(expected, arguments);
    }

    @Test
    void aStoreOnAServerIsOfTheKindBehindItsPrefix() throws Exception {
        assertTrue(Arguments.ofClient(List.of("load", "store-redis", "-p", "recordcount=10")).contains("store=redis"));
    }

    @Test
    void aWorkloadWithoutItsClassIsTheCoreWorkload() throws Exception {
        List<String> arguments = Arguments.ofClient(List.of("load", "redis", "-p", "recordcount=10"));
        assertEquals(
                List.of("-load", "-db", RedisClient.class.getName(), "-p", "recordcount=10", "-p", CORE_WORKLOAD), arguments);
    }

    @Test
    void aSinglePropertyCountsMoreThanAFile(@TempDir Path directory) throws Exception {
        Path workload = Files.writeString(directory.resolve("w"), "recordcount=ten\n");
        List<String> given = List.of("load", "cql", "-p", "recordcount=10", "-P", workload.toString());
        assertTrue(Arguments.ofClient(given).contains("recordcount=10"));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            lode aiodb                                                     | give load or run
            load leveldb                                                   | [aiodb, cql, lmdb, redis, rocksdb, store-mysql, store-redis]
            load                                                           | which store
            load aiodb                                                     | recordcount
            load aiodb -p recordcount=0                                    | recordcount
            load aiodb -p recordcount=1e6                                  | recordcount = 1e6
            load aiodb -p recordcount                                      | NAME=VALUE
            load aiodb -p                                                  | behind -p
            load aiodb -P missing-file                                     | missing-file
            load aiodb -p recordcount=1 --threads 3                        | --threads
            load aiodb -p recordcount=1 -threads 0                         | threadcount = 0
            load aiodb -p recordcount=1 -target -5                         | target = -5
            load aiodb -p recordcount=1 -p fieldcount=0                    | fieldcount = 0
            run aiodb -p recordcount=1                                     | operationcount
            """)
    void whatCannotBeDoneIsRefusedWithAReason(String given, String reason) {
        Arguments.Refused refused =
                assertThrows(Arguments.Refused.class, () -> Arguments.ofClient(List.of(given.split(" +"))));
        assertTrue(refused.getMessage().contains(reason), refused.getMessage());
    }
}

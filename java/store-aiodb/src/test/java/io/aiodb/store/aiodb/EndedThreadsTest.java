package io.aiodb.store.aiodb;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.aiodb.store.Stores;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The library outlives the thread that loaded it. A virtual machine of its own shows that: in this one another thread may have. */
class EndedThreadsTest {
    private static final int THREADS = 10;

    @TempDir
    Path directory;

    /** The system gives a new thread the memory of one that has ended, and with it the address by which an allocator knows it. */
    @Test
    void aNewThreadMayHaveThePlaceOfTheOneThatLoadedTheLibrary() throws Exception {
        Process process = new ProcessBuilder(
                        ProcessHandle.current().info().command().orElse("java"),
                        "--add-opens=java.base/java.nio=ALL-UNNAMED",
                        "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
                        "-cp",
                        System.getProperty("java.class.path"),
                        EndedThreadsTest.class.getName(),
                        directory.toString())
                .redirectErrorStream(true)
                .start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, process.waitFor(), output);
    }

    public static void main(String[] arguments) throws Exception {
        inThread(NativeLibrary::load);
        for (int thread = 0; thread < THREADS; thread++) {
            Path place = Path.of(arguments[0], "store" + thread);
            inThread(() -> Stores.open("aiodb", place, Map.of()).close());
        }
    }

    private static void inThread(Runnable task) throws InterruptedException {
        Thread thread = new Thread(task);
        thread.start();
        thread.join();
    }
}

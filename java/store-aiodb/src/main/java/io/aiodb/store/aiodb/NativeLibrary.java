package io.aiodb.store.aiodb;

import io.aiodb.store.StoreException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.LockSupport;

/**
 * Brings the native library from the jar into the virtual machine.
 *
 * <p>The jar has one for each platform, {@code native/linux-x86_64/libaiodb_jni.so} and so on. It is copied to a new file
 * that only this user can read, loaded, and removed again. Two system properties change that:
 * {@code aiodb.native.library} names a library to be loaded instead, {@code aiodb.native.directory} a directory for the
 * copy where that for temporary files does not allow programs.
 */
final class NativeLibrary {
    private static final String FILE = "libaiodb_jni.so";

    /** The answer of the library, or it belongs to another version. */
    private static final int INTERFACE_VERSION = 11;

    private static boolean loaded;

    private NativeLibrary() {}

    /** Loads the library once. A failure is reported each time anew, so that it can be mended without a restart. */
    static synchronized void load() {
        if (loaded) {
            return;
        }
        String named = System.getProperty("aiodb.native.library");
        if (named != null) {
            loadFile(Path.of(named).toAbsolutePath(), "it is named by -Daiodb.native.library");
        } else {
            loadCopy(platform(System.getProperty("os.name"), System.getProperty("os.arch")));
        }
        checkVersion();
        loaded = true;
    }

    /** The directory of a platform's library in the jar. */
    static String platform(String system, String architecture) {
        String name = system.toLowerCase(Locale.ROOT).replace(' ', '-');
        return switch (architecture) {
            case "amd64", "x86_64" -> name + "-x86_64";
            case "aarch64", "arm64" -> name + "-aarch64";
            default -> name + "-" + architecture;
        };
    }

    /** Copies the library of a platform to a file of its own in a directory. */
    static Path copy(String platform, Path directory) {
        String resource = "/native/" + platform + "/" + FILE;
        try (InputStream library = NativeLibrary.class.getResourceAsStream(resource)) {
            if (library == null) {
                throw new StoreException.NativeLibrary(
                        "there is no native library for " + platform + " (" + resource + ") in " + jar()
                                + ": build it on such a machine with `make java`, or name one with"
                                + " -Daiodb.native.library=PATH",
                        null);
            }
            // Readable by this user alone: what is loaded is what was written.
            Path file = Files.createTempFile(directory, "aiodb-", ".so");
            try {
                return Files.write(file, library.readAllBytes());
            } catch (IOException failure) {
                remove(file);
                throw failure;
            }
        } catch (IOException failure) {
            throw new StoreException.NativeLibrary(
                    "cannot copy the native library for " + platform + " to " + directory + " (" + failure
                            + "): make room there, or name another directory with -Daiodb.native.directory=PATH",
                    failure);
        }
    }

    private static void loadCopy(String platform) {
        String temporary = System.getProperty("java.io.tmpdir");
        Path file = copy(platform, Path.of(System.getProperty("aiodb.native.directory", temporary)));
        try {
            loadFile(file, "it was copied from " + jar() + "; where its directory is mounted with noexec, name another one"
                    + " with -Daiodb.native.directory=PATH");
        } finally {
            remove(file);
        }
    }

    /** A library that is loaded needs its file's name no more. */
    private static void remove(Path file) {
        try {
            Files.deleteIfExists(file);
        } catch (IOException leftBehind) {
            // It costs some space among temporary files, and nothing else.
            file.toFile().deleteOnExit();
        }
    }

    static void loadFile(Path file, String whereFrom) {
        try {
            loadInThreadThatStays(file);
        } catch (UnsatisfiedLinkError failure) {
            String machine = System.getProperty("os.name") + " on " + System.getProperty("os.arch");
            throw new StoreException.NativeLibrary(
                    "cannot load " + file + " on this machine (" + machine + "): " + failure.getMessage() + "; " + whereFrom,
                    failure);
        }
    }

    /**
     * The library's allocator takes the thread that loads it for the first of the process. Where that ends, the next thread that
     * gets its place in memory is taken for it, and crashes the virtual machine: so it waits, as long as the machine runs.
     */
    private static void loadInThreadThatStays(Path file) {
        CompletableFuture<Throwable> outcome = new CompletableFuture<>();
        Runnable loading = () -> {
            try {
                System.load(file.toString());
            } catch (Throwable failure) {
                outcome.complete(failure);
                return;
            }
            outcome.complete(null);
            while (true) {
                LockSupport.park();
            }
        };
        Thread thread = new Thread(null, loading, "aiodb native library", 0, false);
        thread.setContextClassLoader(null);
        thread.setDaemon(true);
        thread.start();
        Throwable failure = outcome.join();
        if (failure instanceof Error error) {
            throw error;
        }
        if (failure instanceof RuntimeException exception) {
            throw exception;
        }
    }

    private static void checkVersion() {
        int found;
        try {
            found = Native.interfaceVersion();
        } catch (UnsatisfiedLinkError failure) {
            throw new StoreException.NativeLibrary("the library that was loaded is not aiodb's: " + failure, failure);
        }
        if (found != INTERFACE_VERSION) {
            throw new StoreException.NativeLibrary(
                    "the native library has interface version " + found + ", the classes want " + INTERFACE_VERSION
                            + ": use both from one build",
                    null);
        }
    }

    private static String jar() {
        return String.valueOf(NativeLibrary.class.getProtectionDomain().getCodeSource().getLocation());
    }
}

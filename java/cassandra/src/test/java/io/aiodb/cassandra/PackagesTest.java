package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Packages know those below them only, so that each can be read, and changed, without what is built on it. */
class PackagesTest {
    private static final String ROOT = "io.aiodb.cassandra";
    private static final Path SOURCES = Path.of("src/main/java", ROOT.split("\\."));

    /** Each package with the packages that it may name. The root, which Cassandra calls, may name all. */
    private static final Map<String, Set<String>> BELOW = Map.of(
            "format", Set.of(),
            "table", Set.of("format"),
            "read", Set.of("format", "table"),
            "write", Set.of("format", "table"),
            "compaction", Set.of("format", "table", "read", "write"),
            "lifecycle", Set.of("format", "table", "read", "write", "compaction"),
            "integration", Set.of("format", "table", "read", "write", "compaction", "lifecycle"));

    /** A class of this module with its package, in an import or elsewhere. A name without a package is of the root. */
    private static final Pattern NAME = Pattern.compile(Pattern.quote(ROOT) + "\\.(?:([a-z]\\w*)\\.)?[A-Z*]\\w*");

    @Test
    void eachPackageKnowsThoseBelowItOnly() throws IOException {
        List<String> wrong = new ArrayList<>();
        for (Path file : sources()) {
            String own = packageOf(file);
            for (String named : namedIn(Files.readString(file))) {
                if (!own.isEmpty() && !own.equals(named) && !BELOW.get(own).contains(named)) {
                    wrong.add(SOURCES.relativize(file) + " names " + (named.isEmpty() ? "the root" : named));
                }
            }
        }
        assertEquals(List.of(), wrong);
    }

    @Test
    void whatIsAllowedHasNoCircle() {
        Map<String, Set<String>> left = new TreeMap<>(BELOW);
        while (!left.isEmpty()) {
            Set<String> lowest = left.keySet().stream()
                    .filter(name -> left.get(name).stream().noneMatch(left::containsKey))
                    .collect(Collectors.toSet());
            assertTrue(!lowest.isEmpty(), () -> "a circle among " + left.keySet());
            left.keySet().removeAll(lowest);
        }
    }

    @Test
    void everyPackageIsKnownAndDescribed() throws IOException {
        Set<String> found = new TreeSet<>();
        for (Path file : sources()) {
            found.add(packageOf(file));
        }
        for (String name : found) {
            assertTrue(Files.exists(SOURCES.resolve(name).resolve("package-info.java")), name + " has no package-info.java");
        }
        found.remove("");
        assertEquals(new TreeSet<>(BELOW.keySet()), found);
    }

    @Test
    void aNameThatGoesUpIsSeen() {
        assertEquals(Set.of("read"), namedIn("import io.aiodb.cassandra.read.PartitionReader;"));
        assertEquals(Set.of("read"), namedIn("import static io.aiodb.cassandra.read.PartitionReader.exists;"));
        assertEquals(Set.of("read"), namedIn("import io.aiodb.cassandra.read.*;"));
        assertEquals(Set.of(""), namedIn("if (memtable instanceof io.aiodb.cassandra.AiodbMemtable)"));
        assertEquals(Set.of(), namedIn("package io.aiodb.cassandra.read;"));
    }

    private static Set<String> namedIn(String text) {
        Set<String> names = new TreeSet<>();
        Matcher matcher = NAME.matcher(text);
        while (matcher.find()) {
            names.add(matcher.group(1) == null ? "" : matcher.group(1));
        }
        return names;
    }

    private static String packageOf(Path file) {
        Path directory = SOURCES.relativize(file).getParent();
        return directory == null ? "" : directory.toString();
    }

    private static List<Path> sources() throws IOException {
        try (Stream<Path> files = Files.walk(SOURCES)) {
            List<Path> sources = files.filter(file -> file.toString().endsWith(".java")).toList();
            assertTrue(sources.size() > BELOW.size(), () -> "no sources in " + SOURCES.toAbsolutePath());
            return sources;
        }
    }
}

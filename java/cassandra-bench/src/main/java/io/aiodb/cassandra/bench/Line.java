package io.aiodb.cassandra.bench;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** What is compared: a memtable with the options of its tables. */
enum Line {
    /** Nothing behind Cassandra's own path: the ceiling. */
    NULL("null", ""),
    AIODB("aiodb", ""),
    /** What a table has unless it is told otherwise. */
    DEFAULT("skiplist", ""),
    DEFAULT_UNCOMPRESSED("skiplist", " AND compression = {'enabled': false}"),
    /** What Cassandra's own documents recommend for many small reads. */
    TUNED("trie", Line.UNIFIED + " AND compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 4}"),
    TUNED_UNCOMPRESSED("trie", Line.UNIFIED + " AND compression = {'enabled': false}");

    private static final String UNIFIED = " AND compaction = {'class': 'UnifiedCompactionStrategy'}";

    private final String memtable;
    private final String options;

    Line(String memtable, String options) {
        this.memtable = memtable;
        this.options = options;
    }

    /** As the user names it, and its tables are called. */
    String title() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** What stands behind the columns of a table. */
    String with() {
        return " WITH memtable = '" + memtable + "'" + options;
    }

    /** Whether its rows go to SSTables. */
    boolean writesSstables() {
        return this != NULL && this != AIODB;
    }

    /** Those named in a list with commas. */
    static List<Line> parse(String names) {
        return Arrays.stream(names.split(","))
                .map(name -> valueOf(name.strip().toUpperCase(Locale.ROOT)))
                .toList();
    }
}

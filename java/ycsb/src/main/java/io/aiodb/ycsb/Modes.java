package io.aiodb.ycsb;

import io.aiodb.store.StorageMode;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import io.aiodb.store.TableModes;
import io.aiodb.store.TableStatistics;
import java.util.Arrays;
import java.util.Locale;
import java.util.OptionalDouble;
import java.util.Properties;
import site.ycsb.workloads.CoreWorkload;

/** The storage modes of the table of a run, as {@code KEYS/VALUES}. */
final class Modes implements Changes.Target {
    private final Store store;
    private final String table;

    Modes(Store store, Properties properties) {
        this.store = store;
        this.table = properties.getProperty(CoreWorkload.TABLENAME_PROPERTY, CoreWorkload.TABLENAME_PROPERTY_DEFAULT);
    }

    @Override
    public void change(String to) {
        store.tableOrCreate(table).setModes(parse(to));
    }

    /** What of the table is in memory, as far as the store knows. */
    @Override
    public String found() {
        TableStatistics statistics = store.tableOrCreate(table).statistics();
        String found = share("keys", statistics.keysInMemory()) + share("values", statistics.valuesInMemory());
        return found.isEmpty() ? "" : "in memory" + found;
    }

    private static String share(String of, OptionalDouble share) {
        return share.isEmpty() ? "" : String.format(Locale.ROOT, " %s %.4f", of, share.getAsDouble());
    }

    static TableModes parse(String given) {
        String[] parts = given.split("/", -1);
        if (parts.length != 2) {
            throw refused(given);
        }
        return new TableModes(mode(given, parts[0]), mode(given, parts[1]));
    }

    private static StorageMode mode(String given, String name) {
        return Arrays.stream(StorageMode.values())
                .filter(mode -> mode.name().toLowerCase(Locale.ROOT).equals(name))
                .findFirst()
                .orElseThrow(() -> refused(given));
    }

    private static StoreException.Configuration refused(String given) {
        return new StoreException.Configuration("modes " + given + ": give KEYS/VALUES, each auto, memory or disk");
    }
}

package io.aiodb.ycsb;

import com.datastax.oss.driver.api.core.cql.Row;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.Vector;
import java.util.stream.Collectors;
import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.Status;
import site.ycsb.workloads.CoreWorkload;

/**
 * YCSB over CQL: a field is a column of blobs, the key a column of text. A scan reads partitions in the order of their
 * tokens from that of the start key on, which is no order of keys: Cassandra has no other over partitions. Keyspace and
 * table are made if they are missing. The properties are those of YCSB's own client for Cassandra where it has them:
 *
 * <ul>
 *   <li>{@code hosts} (separated by commas, default 127.0.0.1), {@code port} (9042), {@code cassandra.username},
 *       {@code cassandra.password}, {@code cassandra.datacenter} (datacenter1)
 *   <li>{@code cassandra.keyspace} (ycsb), {@code cassandra.replication}: the factor of a keyspace that is made (1),
 *       {@code cassandra.table_options}: what stands behind WITH in the table that is made, as {@code memtable = 'aiodb'};
 *       {@code cassandra.truncate}: {@code true} empties the table before anything else (false)
 *   <li>{@code cassandra.memtable_at}: the memtable of the table from given seconds of the run on, by ALTER TABLE, as {@code
 *       0:hot,60:cold}; see {@link Changes}. By default it is left as it is
 *   <li>{@code cassandra.readconsistencylevel}, {@code cassandra.writeconsistencylevel} (QUORUM)
 *   <li>{@code cassandra.entry}: {@code token} (default): a node that has a replica; {@code spread}: each node in turn;
 *       {@code one}: all through the first of {@code hosts}
 *   <li>{@code cassandra.coreconnections}: connections to each node (1); {@code cassandra.readtimeoutmillis} (12000)
 * </ul>
 */
public final class CqlClient extends DB {
    /** The column of the key. */
    static final String KEY = "y_id";

    private static final String MEMTABLE_AT = "cassandra.memtable_at";

    private final Shared shared = Shared.ofThisProcess();
    private Cluster cluster;

    @Override
    public void init() {
        Properties properties = getProperties();
        String table =
                properties.getProperty(CoreWorkload.TABLENAME_PROPERTY, CoreWorkload.TABLENAME_PROPERTY_DEFAULT);
        try {
            cluster = shared.open(Cluster.class, () -> {
                Cluster connected = Cluster.connect(properties);
                connected.makeTable(table, new Record(properties).fields());
                return connected;
            });
            shared.open(
                    Changes.class,
                    () -> Changes.begin(MEMTABLE_AT, properties, memtable -> cluster.alterMemtable(table, memtable)));
        } catch (Exception failure) {
            shared.refuse("use the cluster", failure);
        }
    }

    @Override
    public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
        try {
            Row row = cluster.read(select(table, fields) + " WHERE " + KEY + " = ?", key).one();
            if (row == null) {
                return Status.NOT_FOUND;
            }
            fill(row, result);
            return Status.OK;
        } catch (RuntimeException failure) {
            return shared.failed("the read of", key, failure);
        }
    }

    @Override
    public Status scan(
            String table, String startKey, int count, Set<String> fields, Vector<HashMap<String, ByteIterator>> result) {
        try {
            String statement = select(table, fields) + " WHERE token(" + KEY + ") >= token(?) LIMIT ?";
            for (Row row : cluster.read(statement, startKey, count)) {
                HashMap<String, ByteIterator> record = new HashMap<>();
                fill(row, record);
                result.add(record);
            }
            return Status.OK;
        } catch (RuntimeException failure) {
            return shared.failed("the scan from", startKey, failure);
        }
    }

    @Override
    public Status insert(String table, String key, Map<String, ByteIterator> values) {
        return write("the insert of", table, key, values);
    }

    @Override
    public Status update(String table, String key, Map<String, ByteIterator> values) {
        return write("the update of", table, key, values);
    }

    @Override
    public Status delete(String table, String key) {
        try {
            cluster.write("DELETE FROM " + Cluster.quoted(table) + " WHERE " + KEY + " = ?", key);
            return Status.OK;
        } catch (RuntimeException failure) {
            return shared.failed("the delete of", key, failure);
        }
    }

    /** In CQL an insert and an update of some columns are one thing. */
    private Status write(String operation, String table, String key, Map<String, ByteIterator> values) {
        try {
            List<Object> bound = new ArrayList<>();
            bound.add(key);
            StringBuilder columns = new StringBuilder(KEY);
            values.forEach((field, value) -> {
                columns.append(", ").append(Cluster.quoted(field));
                bound.add(ByteBuffer.wrap(value.toArray()));
            });
            String places = "?" + ", ?".repeat(values.size());
            cluster.write(
                    "INSERT INTO " + Cluster.quoted(table) + " (" + columns + ") VALUES (" + places + ")", bound.toArray());
            return Status.OK;
        } catch (RuntimeException failure) {
            return shared.failed(operation, key, failure);
        }
    }

    private static String select(String table, Set<String> fields) {
        String columns =
                fields == null ? "*" : fields.stream().map(Cluster::quoted).collect(Collectors.joining(", "));
        return "SELECT " + columns + " FROM " + Cluster.quoted(table);
    }

    private static void fill(Row row, Map<String, ByteIterator> result) {
        for (int column = 0; column < row.getColumnDefinitions().size(); column++) {
            String name = row.getColumnDefinitions().get(column).getName().asInternal();
            ByteBuffer value = name.equals(KEY) ? null : row.getByteBuffer(column);
            if (value != null) {
                byte[] bytes = new byte[value.remaining()];
                value.get(bytes);
                result.put(name, new ByteArrayByteIterator(bytes));
            }
        }
    }
}

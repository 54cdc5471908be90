package io.aiodb.cassandra;

import io.aiodb.cassandra.format.StoredKey;
import io.aiodb.cassandra.lifecycle.OpenStores;
import io.aiodb.cassandra.write.KeyLimit;
import io.aiodb.store.Capabilities;
import java.nio.ByteBuffer;
import java.util.Map;
import org.apache.cassandra.config.CassandraRelevantProperties;
import org.apache.cassandra.cql3.BatchQueryOptions;
import org.apache.cassandra.cql3.CQLStatement;
import org.apache.cassandra.cql3.QueryHandler;
import org.apache.cassandra.cql3.QueryOptions;
import org.apache.cassandra.cql3.QueryProcessor;
import org.apache.cassandra.cql3.statements.BatchStatement;
import org.apache.cassandra.cql3.statements.ModificationStatement;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.exceptions.InvalidRequestException;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.service.ClientState;
import org.apache.cassandra.service.QueryState;
import org.apache.cassandra.transport.Dispatcher;
import org.apache.cassandra.transport.messages.ResultMessage;
import org.apache.cassandra.utils.FBUtilities;
import org.apache.cassandra.utils.MD5Digest;

/**
 * Cassandra's handler of statements, which in addition refuses a primary key that is too long for the store. A memtable
 * meets it too late: the statement has been taken, and its client would learn only that a write failed.
 */
public final class AiodbQueryHandler implements QueryHandler {
    /** A stored key has each of a value's bytes at most twice, and a few more for each column. */
    private static final int STORED_BYTES_PER_BYTE = 2;

    private static final int REST_BYTES = 1024;

    private final QueryHandler handler = QueryProcessor.instance;

    /** Cassandra makes one through this. */
    public AiodbQueryHandler() {}

    /** Has Cassandra take it, before anybody is served; but not in the place of another one. */
    static void install() {
        if (CassandraRelevantProperties.CUSTOM_QUERY_HANDLER_CLASS.getString() == null) {
            CassandraRelevantProperties.CUSTOM_QUERY_HANDLER_CLASS.setString(AiodbQueryHandler.class.getName());
        }
    }

    @Override
    public CQLStatement parse(String query, QueryState state, QueryOptions options) {
        return handler.parse(query, state, options);
    }

    @Override
    public ResultMessage process(
            CQLStatement statement,
            QueryState state,
            QueryOptions options,
            Map<String, ByteBuffer> customPayload,
            Dispatcher.RequestTime requestTime) {
        check(statement, state, options, true);
        return handler.process(statement, state, options, customPayload, requestTime);
    }

    @Override
    public ResultMessage.Prepared prepare(String query, ClientState state, Map<String, ByteBuffer> customPayload) {
        return handler.prepare(query, state, customPayload);
    }

    @Override
    public Prepared getPrepared(MD5Digest id) {
        return handler.getPrepared(id);
    }

    @Override
    public ResultMessage processPrepared(
            CQLStatement statement,
            QueryState state,
            QueryOptions options,
            Map<String, ByteBuffer> customPayload,
            Dispatcher.RequestTime requestTime) {
        check(statement, state, options, false);
        return handler.processPrepared(statement, state, options, customPayload, requestTime);
    }

    @Override
    public ResultMessage processBatch(
            BatchStatement batch,
            QueryState state,
            BatchQueryOptions options,
            Map<String, ByteBuffer> customPayload,
            Dispatcher.RequestTime requestTime) {
        for (int position = 0; position < batch.getStatements().size(); position++) {
            // Some of them may be texts of their own.
            check(batch.getStatements().get(position), state, options.forStatement(position), true);
        }
        return handler.processBatch(batch, state, options, customPayload, requestTime);
    }

    private static void check(CQLStatement statement, QueryState state, QueryOptions options, boolean hasText) {
        if (statement instanceof ModificationStatement modification) {
            check(modification, state.getClientState(), options, hasText);
        } else if (statement instanceof BatchStatement batch) {
            batch.getStatements().forEach(each -> check(each, state.getClientState(), options, hasText));
        }
    }

    /** @param hasText whether there may be values in the text of the statement, beside those of the options */
    private static void check(
            ModificationStatement statement, ClientState state, QueryOptions options, boolean hasText) {
        TableMetadata table = statement.metadata();
        if (!(table.params.memtable.factory() instanceof AiodbFactory factory)) {
            return;
        }
        Capabilities capabilities = OpenStores.of(factory.configuration()).store().capabilities();
        if (!hasText && bytes(options) * STORED_BYTES_PER_BYTE + REST_BYTES <= capabilities.maxKeyBytes()) {
            return;
        }
        int longest;
        try {
            longest = longestKey(statement, table, state, options);
        } catch (InvalidRequestException wrong) {
            // Cassandra says so when it executes the statement, after more important things.
            return;
        }
        KeyLimit.check(longest, table, capabilities);
    }

    private static long bytes(QueryOptions options) {
        long bytes = 0;
        for (ByteBuffer value : options.getValues()) {
            bytes += value == null ? 0 : value.remaining();
        }
        return bytes;
    }

    private static int longestKey(
            ModificationStatement statement, TableMetadata table, ClientState state, QueryOptions options) {
        int longest = 0;
        StoredKey key = new StoredKey();
        for (ByteBuffer name : statement.buildPartitionKeyNames(options, state)) {
            key.partition(table.partitioner.decorateKey(name)).entry(StoredKey.DELETION);
            longest = Math.max(longest, key.length());
            if (statement.getRestrictions().isColumnRange()) {
                continue;
            }
            for (Clustering<?> clustering : statement.createClustering(options, state)) {
                boolean refusedAnyway = clustering.dataSize() > FBUtilities.MAX_UNSIGNED_SHORT;
                if (refusedAnyway || clustering == Clustering.STATIC_CLUSTERING) {
                    continue;
                }
                key.entry(StoredKey.ROW, table.comparator.asByteComparable(clustering));
                longest = Math.max(longest, key.length());
            }
        }
        return longest;
    }
}

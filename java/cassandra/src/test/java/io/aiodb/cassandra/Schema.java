package io.aiodb.cassandra;

import java.nio.ByteBuffer;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.db.marshal.MapType;
import org.apache.cassandra.db.marshal.ReversedType;
import org.apache.cassandra.db.marshal.UTF8Type;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.schema.TableId;
import org.apache.cassandra.schema.TableMetadata;

/** Tables for the tests, without a node. */
final class Schema {
    static {
        DatabaseDescriptor.clientInitialization();
        DatabaseDescriptor.setPartitionerUnsafe(Murmur3Partitioner.instance);
    }

    static final TableId ID = TableId.generate();

    private Schema() {}

    /** A partition key, two clustering columns of which the second is reversed, a static column, and two others. */
    static TableMetadata.Builder builder() {
        return singleCells().addRegularColumn("m", MapType.getInstance(Int32Type.instance, UTF8Type.instance, true));
    }

    private static TableMetadata.Builder singleCells() {
        return TableMetadata.builder("k", "t", ID)
                .partitioner(Murmur3Partitioner.instance)
                .addPartitionKeyColumn("p", Int32Type.instance)
                .addClusteringColumn("a", UTF8Type.instance)
                .addClusteringColumn("b", ReversedType.getInstance(Int32Type.instance))
                .addStaticColumn("s", UTF8Type.instance)
                .addRegularColumn("v", UTF8Type.instance);
    }

    /** The same table without the one that has several cells. */
    static TableMetadata withoutMap() {
        return singleCells().build();
    }

    /** A partition key, a clustering column, and two columns of single cells. */
    static TableMetadata.Builder flat() {
        return TableMetadata.builder("k", "flat", ID)
                .partitioner(Murmur3Partitioner.instance)
                .addPartitionKeyColumn("p", Int32Type.instance)
                .addClusteringColumn("a", UTF8Type.instance)
                .addRegularColumn("v", UTF8Type.instance)
                .addRegularColumn("w", UTF8Type.instance);
    }

    static TableMetadata table() {
        return builder().build();
    }

    static DecoratedKey key(int number) {
        return Murmur3Partitioner.instance.decorateKey(Int32Type.instance.decompose(number));
    }

    static ByteBuffer text(String text) {
        return UTF8Type.instance.decompose(text);
    }

    static String string(ByteBuffer text) {
        return UTF8Type.instance.compose(text);
    }
}

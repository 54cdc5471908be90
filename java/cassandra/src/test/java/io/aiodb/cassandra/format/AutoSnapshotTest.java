package io.aiodb.cassandra.format;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.aiodb.cassandra.fixture.Schema;
import java.util.Arrays;
import java.util.List;
import org.apache.cassandra.cql3.FieldIdentifier;
import org.apache.cassandra.db.marshal.CounterColumnType;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.db.marshal.UTF8Type;
import org.apache.cassandra.db.marshal.UserType;
import org.apache.cassandra.schema.ColumnMetadata;
import org.apache.cassandra.schema.CompressionParams;
import org.apache.cassandra.schema.TableMetadata;
import org.junit.jupiter.api.Test;

/** A table that is dropped is known well enough from what is stored of it. */
class AutoSnapshotTest {
    private static final UserType PLACE = new UserType(
            "k",
            UTF8Type.instance.decompose("place"),
            List.of(FieldIdentifier.forUnquoted("street"), FieldIdentifier.forUnquoted("number")),
            List.of(UTF8Type.instance, Int32Type.instance),
            true);

    @Test
    void columnsOfAllKindsAndThoseOfBefore() {
        TableMetadata table = Schema.builder()
                .addRegularColumn("place", PLACE)
                .addRegularColumn("frozen", PLACE.freeze())
                .recordColumnDrop(
                        ColumnMetadata.regularColumn("k", "t", "gone", UTF8Type.instance), 1_700_000_000_000_000L)
                .build();
        assertSame(table, again(table));
    }

    @Test
    void counters() {
        TableMetadata table = TableMetadata.builder("k", "t", Schema.ID)
                .addPartitionKeyColumn("p", Int32Type.instance)
                .addRegularColumn("n", CounterColumnType.instance)
                .isCounter(true)
                .build();
        assertSame(table, again(table));
    }

    @Test
    void compression() {
        for (CompressionParams compression : List.of(CompressionParams.noCompression(), CompressionParams.deflate(4096))) {
            TableMetadata table = Schema.builder().compression(compression).build();
            assertEquals(compression, again(table).params.compression);
        }
    }

    @Test
    void whatWasCutShortDoesNotParse() {
        byte[] encoded = new AutoSnapshot("s", "CREATE TABLE", Schema.table()).encode();
        for (int length = 0; length < encoded.length; length++) {
            byte[] cut = Arrays.copyOf(encoded, length);
            assertThrows(IllegalStateException.class, () -> AutoSnapshot.decode(Schema.ID, cut), "of " + length + " bytes");
        }
    }

    private static TableMetadata again(TableMetadata table) {
        AutoSnapshot kept = AutoSnapshot.decode(Schema.ID, new AutoSnapshot("snapshot", "CREATE TABLE", table).encode());
        assertEquals("snapshot", kept.snapshot());
        assertEquals("CREATE TABLE", kept.schema());
        return kept.metadata();
    }

    private static void assertSame(TableMetadata table, TableMetadata again) {
        assertEquals(table.keyspace, again.keyspace);
        assertEquals(table.name, again.name);
        assertEquals(table.id, again.id);
        assertEquals(List.copyOf(table.columns()), List.copyOf(again.columns()));
        assertEquals(table.droppedColumns, again.droppedColumns);
        assertEquals(table.flags, again.flags);
    }
}

package io.aiodb.cassandra.format;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.cassandra.db.BufferDecoratedKey;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.dht.IPartitioner;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.utils.bytecomparable.ByteComparable;
import org.apache.cassandra.utils.bytecomparable.ByteComparable.Version;
import org.apache.cassandra.utils.bytecomparable.ByteSource;
import org.apache.cassandra.utils.bytecomparable.ByteSourceInverse;

/**
 * The keys of the store: the partition, one byte for the kind of the entry, and the clustering, each as Cassandra makes them
 * comparable byte by byte (CASSANDRA-6936, {@code ByteComparable.md}). The partition begins with its token, so token ranges
 * are key ranges, and the entries of a partition lie together: first those that the readers of every slice need.
 */
public final class StoredKey {
    /** Deletions of the whole partition; no clustering. */
    public static final byte DELETION = 0;

    /** The static row; no clustering. */
    public static final byte STATIC = 1;

    /** Range tombstones, by the bound where they begin. */
    public static final byte RANGE_TOMBSTONE = 2;

    /** A row, by its clustering. */
    public static final byte ROW = 3;

    /** No entry: the place behind all of a partition's. */
    public static final byte END = 4;

    /** The order does not change while tables of this version are stored. */
    private static final Version VERSION = Version.OSS50;

    private static final int FIRST_CAPACITY_BYTES = 64;

    private byte[] bytes = new byte[FIRST_CAPACITY_BYTES];
    private int length;
    private int partitionLength;

    /** Goes to a partition. */
    public StoredKey partition(DecoratedKey key) {
        length = 0;
        append(key.asComparableBytes(VERSION));
        partitionLength = length;
        return this;
    }

    /** Goes to the entry of a kind of the same partition. */
    public StoredKey entry(byte kind) {
        length = partitionLength;
        append(kind);
        return this;
    }

    /** Goes to an entry of the same partition with a clustering, or to the place of a bound. */
    public StoredKey entry(byte kind, ByteComparable clustering) {
        entry(kind);
        append(clustering.asComparableBytes(VERSION));
        return this;
    }

    /** The key, valid until the next change. */
    public ByteBuffer buffer() {
        return ByteBuffer.wrap(bytes, 0, length);
    }

    /** The length of the key, in bytes. */
    public int length() {
        return length;
    }

    /** The key, in an array of its own. */
    public byte[] copy() {
        return Arrays.copyOf(bytes, length);
    }

    /** A bound of partitions as a key that no entry has. */
    public static byte[] bound(ByteComparable bound) {
        return ByteSourceInverse.readBytes(bound.asComparableBytes(VERSION));
    }

    /** The partition of a stored key, and how long its part of the key is. */
    public record Partition(DecoratedKey key, byte[] prefix) {
        /** The partition of a key of Cassandra's. */
        public static Partition of(DecoratedKey key) {
            return new Partition(key, new StoredKey().partition(key).copy());
        }

        /** Whether another stored key is of this partition. */
        public boolean has(ByteBuffer key) {
            return key.remaining() > prefix.length
                    && key.slice(key.position(), prefix.length).equals(ByteBuffer.wrap(prefix));
        }

        /** The key of an entry without clustering, or of the place where the entries of a kind begin. */
        public byte[] entry(byte kind) {
            byte[] entry = Arrays.copyOf(prefix, prefix.length + 1);
            entry[prefix.length] = kind;
            return entry;
        }

        /** The kind of the entry of a stored key of this partition. */
        public byte kind(ByteBuffer key) {
            return key.get(key.position() + prefix.length);
        }
    }

    /** Takes the partition out of a stored key. */
    public static Partition parse(ByteBuffer key, IPartitioner partitioner) {
        int start = key.position();
        ByteBuffer rest = key.duplicate();
        ByteSource.Peekable source =
                ByteSource.peekable(() -> rest.hasRemaining() ? rest.get() & 0xFF : ByteSource.END_OF_STREAM);
        Token token = partitioner.getTokenFactory()
                .fromComparableBytes(ByteSourceInverse.nextComponentSource(source), VERSION);
        byte[] name = ByteSourceInverse.getUnescapedBytes(ByteSourceInverse.nextComponentSource(source));
        int terminator = source.next();
        if (terminator != ByteSource.TERMINATOR) {
            throw new IllegalStateException("a stored key whose partition ends with " + terminator);
        }
        byte[] prefix = new byte[rest.position() - start];
        key.get(start, prefix);
        return new Partition(new BufferDecoratedKey(token, ByteBuffer.wrap(name)), prefix);
    }

    private void append(ByteSource source) {
        for (int next = source.next(); next != ByteSource.END_OF_STREAM; next = source.next()) {
            append((byte) next);
        }
    }

    private void append(byte next) {
        if (length == bytes.length) {
            bytes = Arrays.copyOf(bytes, 2 * length);
        }
        bytes[length++] = next;
    }
}

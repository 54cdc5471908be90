package io.aiodb.ycsb;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;
import site.ycsb.workloads.CoreWorkload;

/**
 * How the fields of YCSB's records become one value of a key-value store. Of a workload with one field the value is that
 * field. Of more, it is every field in the order of their numbers, each behind its length in four bytes, little-endian.
 */
final class Record {
    private final List<String> fields = new ArrayList<>();

    Record(Properties properties) {
        int count = Integer.parseInt(
                properties.getProperty(CoreWorkload.FIELD_COUNT_PROPERTY, CoreWorkload.FIELD_COUNT_PROPERTY_DEFAULT));
        String prefix = properties.getProperty(CoreWorkload.FIELD_NAME_PREFIX, CoreWorkload.FIELD_NAME_PREFIX_DEFAULT);
        for (int number = 0; number < count; number++) {
            fields.add(prefix + number);
        }
    }

    /** The names of the fields, in order. */
    List<String> fields() {
        return fields;
    }

    /** Whether these values are a whole record, so that what was there need not be read. */
    boolean isWhole(Map<String, ByteIterator> values) {
        return values.size() == fields.size();
    }

    /** The value of a record with these fields. */
    byte[] encode(Map<String, ByteIterator> values) {
        byte[][] parts = new byte[fields.size()][];
        replace(parts, values);
        return join(parts);
    }

    /** The value of a record after some of its fields were given others. */
    byte[] update(byte[] value, Map<String, ByteIterator> values) {
        byte[][] parts = split(value);
        replace(parts, values);
        return join(parts);
    }

    /** Takes the wanted fields out of a value; null wants all. */
    void decode(byte[] value, Set<String> wanted, Map<String, ByteIterator> result) {
        byte[][] parts = split(value);
        for (int number = 0; number < parts.length; number++) {
            if (wanted == null || wanted.contains(fields.get(number))) {
                result.put(fields.get(number), new ByteArrayByteIterator(parts[number]));
            }
        }
    }

    /** As {@link #decode}, into a map of its own. */
    HashMap<String, ByteIterator> decoded(byte[] value, Set<String> wanted) {
        HashMap<String, ByteIterator> result = new HashMap<>();
        decode(value, wanted, result);
        return result;
    }

    private void replace(byte[][] parts, Map<String, ByteIterator> values) {
        values.forEach((name, field) -> {
            int number = fields.indexOf(name);
            if (number < 0) {
                throw new IllegalArgumentException("there is no field " + name + ": the workload has " + fields);
            }
            parts[number] = field.toArray();
        });
    }

    private byte[][] split(byte[] value) {
        byte[][] parts = new byte[fields.size()][];
        if (parts.length == 1) {
            parts[0] = value;
            return parts;
        }
        ByteBuffer rest = ByteBuffer.wrap(value).order(ByteOrder.LITTLE_ENDIAN);
        for (int number = 0; number < parts.length; number++) {
            int length = rest.remaining() < Integer.BYTES ? -1 : rest.getInt();
            if (length < 0 || length > rest.remaining()) {
                throw otherWorkload();
            }
            parts[number] = new byte[length];
            rest.get(parts[number]);
        }
        if (rest.hasRemaining()) {
            throw otherWorkload();
        }
        return parts;
    }

    private byte[] join(byte[][] parts) {
        for (int number = 0; number < parts.length; number++) {
            if (parts[number] == null) {
                throw new IllegalArgumentException("a record without " + fields.get(number));
            }
        }
        if (parts.length == 1) {
            return parts[0];
        }
        int bytes = 0;
        for (byte[] part : parts) {
            bytes += Integer.BYTES + part.length;
        }
        ByteBuffer value = ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
        for (byte[] part : parts) {
            value.putInt(part.length).put(part);
        }
        return value.array();
    }

    private IllegalStateException otherWorkload() {
        return new IllegalStateException(
                "a record that does not have " + fields.size() + " fields: it was loaded with another fieldcount");
    }
}

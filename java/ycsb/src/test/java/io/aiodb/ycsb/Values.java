package io.aiodb.ycsb;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;

/** Records as YCSB hands them over, and as tests compare them. */
final class Values {
    private Values() {}

    /** The properties of a workload with so many fields. */
    static Properties workload(int fields) {
        Properties properties = new Properties();
        properties.setProperty("fieldcount", Integer.toString(fields));
        return properties;
    }

    /** Values by field: name, value, name, value... */
    static Map<String, ByteIterator> of(String... namesAndValues) {
        Map<String, ByteIterator> values = new HashMap<>();
        for (int at = 0; at < namesAndValues.length; at += 2) {
            values.put(namesAndValues[at], new ByteArrayByteIterator(namesAndValues[at + 1].getBytes(StandardCharsets.UTF_8)));
        }
        return values;
    }

    static Map<String, String> text(Map<String, ByteIterator> values) {
        Map<String, String> text = new TreeMap<>();
        values.forEach((name, value) -> text.put(name, value.toString()));
        return text;
    }
}

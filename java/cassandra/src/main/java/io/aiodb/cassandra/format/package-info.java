/**
 * The bytes that a store has of tables: keys, the frames of values, and the headers and statistics that are stored beside
 * them.
 *
 * <p><b>Owns</b> the layout: every byte of a table's rows, headers, statistics and snapshots is written and read here. (The
 * keys of {@code Catalog} are its own.)
 *
 * <p><b>Promises</b> that bytes which an older version of the same format has written are read, that keys compare byte by
 * byte as Cassandra compares partitions and clusterings, and that bytes which do not parse are an error that says so, never
 * absence.
 *
 * <p><b>Never</b> reads or writes a store, takes a lock, or knows a node.
 */
package io.aiodb.cassandra.format;

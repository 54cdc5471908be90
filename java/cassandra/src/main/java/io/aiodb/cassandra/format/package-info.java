/**
 * The bytes that a store has of tables: keys, the frames of values, and what is stored about rows beside them.
 *
 * <p><b>Owns</b> the layout: every byte of a table's rows, headers and statistics is written and read here.
 *
 * <p><b>Promises</b> that what an older version of the same format has written is read, that keys compare byte by byte as
 * Cassandra compares what they stand for, and that what does not parse is an error that says so, never absence.
 *
 * <p><b>Never</b> reads or writes a store, takes a lock, or knows a node.
 */
package io.aiodb.cassandra.format;

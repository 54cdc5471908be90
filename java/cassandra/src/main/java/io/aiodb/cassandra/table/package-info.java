/**
 * The state of stored tables that reads, writes and compactions share: the table and its store, the locks of its partitions,
 * the catalog of stored tables, bounds of the rows that are known without reading them, and whether the store's server answers.
 *
 * <p><b>Owns</b> the state of open stores and of their tables, in memory and in the catalog.
 *
 * <p><b>Promises</b> that the catalog says durably at each moment what becomes of a stored table if the node stops, and that
 * no bound by which a reader or a purge spares some work leaves out a write: it is widened before the write.
 *
 * <p><b>Never</b> reads or writes rows, and knows no memtable but by {@link io.aiodb.cassandra.table.StoredMemtable}.
 */
package io.aiodb.cassandra.table;

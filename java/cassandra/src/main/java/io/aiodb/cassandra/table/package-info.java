/**
 * What everybody who works on a stored table shares: the table and its store, the locks of its partitions, the catalog of what is
 * stored, and what is known of its rows without reading them.
 *
 * <p><b>Owns</b> the state of open stores and of their tables, in memory and in the catalog.
 *
 * <p><b>Promises</b> that the catalog says durably at each moment what becomes of a stored table if the node stops, and that nothing that is
 * noted here to spare a reader or a purge some work leaves out a write: it is noted before it is written.
 *
 * <p><b>Never</b> reads or writes rows, and knows no memtable but by {@link io.aiodb.cassandra.table.StoredMemtable}.
 */
package io.aiodb.cassandra.table;

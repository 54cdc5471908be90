/**
 * Apache Cassandra 5 with its tables in a {@link io.aiodb.store.Store}: {@link io.aiodb.cassandra.AiodbMemtable} is a
 * memtable that is never flushed (CEP-11, CASSANDRA-17034). Cassandra keeps the ring, the replicas, CQL and the clients; the
 * store keeps the rows.
 *
 * <p>Here are only the classes that Cassandra calls, under the names that {@code cassandra.yaml}, its options and its stored
 * schema know them by; those names never change. The packages below do the work. Each names only packages that
 * come before it in this list:
 *
 * <ol>
 *   <li>{@code format}: the bytes of keys and values
 *   <li>{@code table}: the state of a stored table that all its users share: its store, its locks, bounds of its rows
 *   <li>{@code read} and {@code write}, which do not know each other
 *   <li>{@code compaction}: entries that are written again, or removed
 *   <li>{@code lifecycle}: how a memtable gets its rows, and where they go when it ends
 *   <li>{@code integration}: nodetool, metrics, repairs and statements, which know SSTables only
 * </ol>
 */
package io.aiodb.cassandra;

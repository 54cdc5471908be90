/**
 * Apache Cassandra 5 with its tables in a {@link io.aiodb.store.Store}: {@link io.aiodb.cassandra.AiodbMemtable} is a memtable
 * that is never flushed. Cassandra keeps the ring, the replicas, CQL and the clients; the store keeps the rows.
 */
package io.aiodb.cassandra;

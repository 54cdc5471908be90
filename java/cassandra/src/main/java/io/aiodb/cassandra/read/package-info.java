/**
 * Reads of partitions, of ranges, and of a sample of them, merged as Cassandra merges.
 *
 * <p><b>Owns</b> how entries become rows: which gets and scans a query needs, and which are made again where a store ended a
 * scan.
 *
 * <p><b>Promises</b> a query each update of a partition whole or not at all, and a caller that takes long every row that was
 * there from the beginning to the end. Failures of the disk are errors of Cassandra's.
 *
 * <p><b>Never</b> writes. Entries that it finds to be long go into the {@link io.aiodb.cassandra.table.MergeQueue}.
 */
package io.aiodb.cassandra.read;

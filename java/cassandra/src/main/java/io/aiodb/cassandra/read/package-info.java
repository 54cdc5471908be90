/**
 * Reads of partitions, of ranges, and of a sample of them, merged as Cassandra merges.
 *
 * <p><b>Owns</b> how entries become rows: which gets and scans a query needs, and what is read again where a store ended a scan.
 *
 * <p><b>Promises</b> a query each update of a partition whole or not at all, and whoever takes long all that was there from the beginning to the
 * end. Failures of the disk are those of Cassandra.
 *
 * <p><b>Never</b> writes. What it finds to be long it puts into the {@link io.aiodb.cassandra.table.MergeQueue}.
 */
package io.aiodb.cassandra.read;

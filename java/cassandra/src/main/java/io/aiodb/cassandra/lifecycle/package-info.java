/**
 * How a memtable gets its rows, and where they go when it ends: stores are opened, stored tables attached, moved to another memtable, and
 * written to snapshots.
 *
 * <p><b>Owns</b> which stores are open in this process, and which memtable has which stored table.
 *
 * <p><b>Promises</b> that rows are in exactly one place that Cassandra reads, whenever the node stops: what was begun before is completed when it
 * starts, before it serves anybody.
 *
 * <p><b>Never</b> removes rows before they are where they are to go, durably.
 */
package io.aiodb.cassandra.lifecycle;

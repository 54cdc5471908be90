/**
 * How a memtable gets its rows, and where they go when it ends: stores are opened, stored tables attached, moved to another
 * memtable, and written to snapshots.
 *
 * <p><b>Owns</b> which stores are open in this process, and which memtable has which stored table.
 *
 * <p><b>Promises</b> that no row is lost and none comes back, whenever the node stops: a move, a truncate or a drop that was
 * begun is completed, or has not happened, when the node serves clients again.
 *
 * <p><b>Never</b> removes rows before they are where they are to go, durably.
 */
package io.aiodb.cassandra.lifecycle;

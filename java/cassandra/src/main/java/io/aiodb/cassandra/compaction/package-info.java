/**
 * Entries that are written again or removed in a store, since they are deleted, expired, of many updates, or another node's;
 * and SSTables that are moved into it. It is done as Cassandra's compactions are: on its threads, listed by nodetool, to be
 * stopped.
 *
 * <p><b>Owns</b> when an entry may be replaced or removed.
 *
 * <p><b>Promises</b> that no reader sees a difference, that no deletion goes before all rows that it hides, here, in
 * SSTables and in the commit log, and that it can end at any moment without loss.
 *
 * <p><b>Never</b> replaces an entry without its partition's lock, or a deletion that the rest of an unfinished update may
 * still need.
 */
package io.aiodb.cassandra.compaction;

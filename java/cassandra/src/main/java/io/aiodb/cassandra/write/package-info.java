/**
 * Writes of updates: one batch for each, of appends, without reading.
 *
 * <p><b>Owns</b> which updates are one batch and which are written in parts, and the bounds of both.
 *
 * <p><b>Promises</b> that an update is there as a whole or not at all, also where it is larger than a store takes at once
 * and the node ends half-way, and that it is as durable as its class says when the call returns.
 *
 * <p><b>Never</b> reads rows, except the kept copy of an update that is written in parts, and a value to which more is added
 * than a store appends.
 */
package io.aiodb.cassandra.write;

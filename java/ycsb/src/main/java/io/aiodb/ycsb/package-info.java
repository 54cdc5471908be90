/**
 * YCSB's own client over the {@link io.aiodb.store.Store}s of this project in its own process, over the Redis protocol,
 * and over CQL. {@link io.aiodb.ycsb.Main} is the command.
 */
package io.aiodb.ycsb;

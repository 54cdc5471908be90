/**
 * Where Cassandra takes every table for SSTables: nodetool and JMX, metrics, estimates of sizes, repairs' validations, and
 * statements and settings that tables in stores do not support.
 *
 * <p><b>Owns</b> the places at which this plug-in stands in for a part of Cassandra.
 *
 * <p><b>Promises</b> the answers that Cassandra would give for the same rows in SSTables, or a refusal that says what to do
 * instead.
 *
 * <p><b>Never</b> changes what Cassandra does for tables with other memtables. Only where a node is told to report what its
 * reads cost ({@link io.aiodb.cassandra.integration.ReadCostReport}), the order of replicas follows for these tables too.
 */
package io.aiodb.cassandra.integration;

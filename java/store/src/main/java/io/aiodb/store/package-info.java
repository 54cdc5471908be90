/**
 * Ordered key-value stores behind one interface: {@link io.aiodb.store.Store}. What every store must do is checked by one
 * suite of tests, {@code StoreContract}.
 */
package io.aiodb.store;

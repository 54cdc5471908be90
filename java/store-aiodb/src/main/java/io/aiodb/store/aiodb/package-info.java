/** The engine {@code aiodb} as a {@link io.aiodb.store.Store}, through its native library. */
package io.aiodb.store.aiodb;

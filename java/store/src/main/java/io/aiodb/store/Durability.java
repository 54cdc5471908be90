package io.aiodb.store;

/**
 * What an acknowledged write has survived. In every class it survives the death of the process, {@code kill -9}
 * included; the classes differ in what a power cut may take. A store may always give a stronger class than was asked
 * for ({@link Capabilities#durabilities()} says which ones it tells apart).
 */
public enum Durability {
    /** Acknowledged means on the device: a power cut takes nothing. */
    SYNC,
    /** A power cut may take the writes acknowledged within the store's interval before it. */
    INTERVAL,
    /** A power cut may take whatever the system had not yet written. */
    NONE
}

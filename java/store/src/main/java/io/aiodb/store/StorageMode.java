package io.aiodb.store;

/** Whether memory is for the keys of a table, or for its values. The disk always has both, so a change moves nothing. */
public enum StorageMode {
    /** Memory takes what is asked for, as far as the parameters of the store give it room, and prefers nothing. */
    AUTO,
    /** Memory takes all of it, as far as there is room, and lets go of others' first. */
    MEMORY,
    /** Memory takes nothing more of it. */
    DISK
}

package io.aiodb.store;

/** What the values of a table are, which a store may know to keep less of them. */
public enum ValueKind {
    /** Any bytes. */
    BYTES,
    /**
     * Rows of frames, which are appended one by one. A frame is its length and so many bytes, of which the first says what it
     * is: {@link #ALONE}, or {@link #WITH_COVER} for one that goes on with a number that says what its parts mean, the set of
     * its parts as bits of a number, the earliest time of a part (8 bytes, big-endian), and how much later the latest is.
     * Numbers are unsigned and variable: as many one bits as bytes follow, a zero bit unless there are eight, and the number,
     * big-endian.
     *
     * <p>A store may leave out a frame when others of the same meaning have each of its parts, and their earliest times are
     * after the latest of its own. A reader that takes each part from the frame where it is latest misses nothing. A store that
     * does not know of frames keeps them all.
     */
    FRAMES;

    /** The first byte of a frame that is never left out. */
    public static final byte ALONE = 0;

    /** The first byte of a frame that says what it has. */
    public static final byte WITH_COVER = 1;
}

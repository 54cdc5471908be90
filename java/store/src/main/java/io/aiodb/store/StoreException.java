package io.aiodb.store;

/**
 * A failure that a caller must expect: what was attempted, on what, and what to do next. The nested classes say what
 * kind; the message is for people. A null argument is a {@link NullPointerException} instead.
 */
public abstract class StoreException extends RuntimeException {
    private static final long serialVersionUID = 1;

    StoreException(String message) {
        super(message);
    }

    StoreException(String message, Throwable cause) {
        super(message, cause);
    }

    /** The store, snapshot or scan was closed before. */
    public static final class Closed extends StoreException {
        private static final long serialVersionUID = 1;

        public Closed(String message) {
            super(message);
        }
    }

    /** No table has this name, or the handle's table was dropped. */
    public static final class NoSuchTable extends StoreException {
        private static final long serialVersionUID = 1;

        public NoSuchTable(String message) {
            super(message);
        }
    }

    /** A table of this name is there already. */
    public static final class TableExists extends StoreException {
        private static final long serialVersionUID = 1;

        public TableExists(String message) {
            super(message);
        }
    }

    /** This cannot name a table. */
    public static final class TableName extends StoreException {
        private static final long serialVersionUID = 1;

        public TableName(String message) {
            super(message);
        }
    }

    /** A key, value, bound or batch is too long, a key is empty, or too many handles are open. Nothing was changed. */
    public static final class Limit extends StoreException {
        private static final long serialVersionUID = 1;

        public Limit(String message) {
            super(message);
        }
    }

    /** The store ended the snapshot, or the scan, because keeping it had become too expensive. Take a new one. */
    public static final class SnapshotEnded extends StoreException {
        private static final long serialVersionUID = 1;

        public SnapshotEnded(String message) {
            super(message);
        }
    }

    /** There is no space for new data. Nothing was changed; reads go on. */
    public static final class Full extends StoreException {
        private static final long serialVersionUID = 1;

        public Full(String message) {
            super(message);
        }
    }

    /** Stored bytes are not what was written. */
    public static final class Corruption extends StoreException {
        private static final long serialVersionUID = 1;

        public Corruption(String message) {
            super(message);
        }
    }

    /** The store's files were written by a newer version. */
    public static final class NewerVersion extends StoreException {
        private static final long serialVersionUID = 1;

        public NewerVersion(String message) {
            super(message);
        }
    }

    /** Somebody else has the store open. */
    public static final class InUse extends StoreException {
        private static final long serialVersionUID = 1;

        public InUse(String message) {
            super(message);
        }
    }

    /** A read or write of the device failed. After a failed write nothing is accepted until the store is reopened. */
    public static final class Failed extends StoreException {
        private static final long serialVersionUID = 1;

        public Failed(String message) {
            super(message);
        }

        public Failed(String message, Throwable cause) {
            super(message, cause);
        }
    }

    /**
     * The server of the store does not answer, or is not one that has the store's rows. The message says whether a write may
     * have happened. Calls succeed again once the server is back.
     */
    public static final class Unavailable extends StoreException {
        private static final long serialVersionUID = 1;

        public Unavailable(String message) {
            super(message);
        }

        public Unavailable(String message, Throwable cause) {
            super(message, cause);
        }
    }

    /** The store, or this table of it, cannot do that at all. */
    public static final class Unsupported extends StoreException {
        private static final long serialVersionUID = 1;

        public Unsupported(String message) {
            super(message);
        }
    }

    /** A parameter, a directory or the name of a store makes no sense, or is missing. */
    public static final class Configuration extends StoreException {
        private static final long serialVersionUID = 1;

        public Configuration(String message) {
            super(message);
        }

        public Configuration(String message, Throwable cause) {
            super(message, cause);
        }
    }

    /** The store's native library cannot be loaded on this machine. */
    public static final class NativeLibrary extends StoreException {
        private static final long serialVersionUID = 1;

        public NativeLibrary(String message, Throwable cause) {
            super(message, cause);
        }
    }

    /** A broken invariant inside the store: a bug to be reported. */
    public static final class Defect extends StoreException {
        private static final long serialVersionUID = 1;

        public Defect(String message) {
            super(message);
        }

        public Defect(String message, Throwable cause) {
            super(message, cause);
        }
    }
}

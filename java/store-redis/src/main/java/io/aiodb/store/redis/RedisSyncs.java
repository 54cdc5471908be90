package io.aiodb.store.redis;

import io.aiodb.store.Durability;
import io.aiodb.store.StoreException;
import java.util.EnumSet;
import java.util.Set;

/**
 * When the server syncs its file. That is a parameter of the whole server. Where it is `everysec`, a write of class sync has
 * it set to `always` until it is acknowledged, so never to less than was configured: a process that is killed meanwhile
 * leaves it so.
 */
final class RedisSyncs {
    static final String ALWAYS = "always";
    private static final String EVERY_SECOND = "everysec";
    private static final String PARAMETER = "appendfsync";

    private final RedisSession session;
    private final RedisSettings settings;

    /** What the server does when no write of class sync is under way; null before it was asked. */
    private String usual;

    /** Writes of class sync that are under way. */
    private int under;

    /** Whether the parameter may be changed, which it is as long as such writes are. */
    private boolean isLeft;

    /** Stays true: when the server has synced is not asked. */
    private volatile boolean unsynced;

    RedisSyncs(RedisSession session, RedisSettings settings) {
        this.session = session;
        this.settings = settings;
    }

    /** Puts back what a session has changed that was lost with a write of class sync under way. */
    void putBackAfter(RedisSyncs last) {
        unsynced = last.unsynced;
        if (last.isChanged()) {
            session.await(session.commands().configSet(PARAMETER, last.usual));
        }
    }

    private synchronized boolean isChanged() {
        return isLeft;
    }

    /** Whether there may be acknowledged writes of class interval that were not synced. */
    boolean isUnsynced() {
        return unsynced;
    }

    /** What the server is configured to do. */
    String configured() {
        usual = session.configured(PARAMETER);
        return usual;
    }

    /** The classes that writes have here. */
    Set<Durability> classes() {
        if (settings.durability() == Durability.NONE) {
            return EnumSet.of(Durability.NONE);
        }
        return usual.equals(ALWAYS) ? EnumSet.of(Durability.SYNC) : EnumSet.of(Durability.SYNC, Durability.INTERVAL);
    }

    /** Refuses a write of a class that the server was not asked for. */
    void check(Durability durability) {
        if (settings.durability() == Durability.NONE && durability != Durability.NONE) {
            throw new StoreException.Unsupported("class " + RedisStore.spelled(durability)
                    + ": the store was opened with `durability` none; open it with interval or sync");
        }
        unsynced |= durability == Durability.INTERVAL && !ALWAYS.equals(usual);
    }

    /** Before a write of class sync is sent. */
    synchronized void begin() {
        if (EVERY_SECOND.equals(usual)) {
            if (under == 0) {
                isLeft = true;
                session.await(session.commands().configSet(PARAMETER, ALWAYS));
            }
            under++;
        }
    }

    /** After it was acknowledged, or has failed. */
    synchronized void end() {
        if (EVERY_SECOND.equals(usual)) {
            under--;
            if (under == 0 && session.isOpen()) {
                session.await(session.commands().configSet(PARAMETER, usual));
                isLeft = false;
            }
        }
    }
}

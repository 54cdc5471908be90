package io.aiodb.ycsb;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Properties;
import java.util.concurrent.TimeUnit;

/**
 * What is changed at given seconds of a run, while its threads go on: {@code 0:memory/memory,60:memory/disk}. What is to be done at second 0 is done before the
 * first operation. Each change, and what is found before it and at the end, is said on standard error in a line that begins with {@code change: }, beside YCSB's
 * status lines. A change that fails fails the run.
 */
final class Changes implements AutoCloseable {
    /** What is changed. */
    interface Target {
        /** Makes a change, and returns once it is made. */
        void change(String to) throws Exception;

        /** What there is to say before a change and at the end; empty if there is nothing. */
        default String found() {
            return "";
        }
    }

    /** One change. */
    record Change(long second, String to) {}

    private final Target target;
    private final Thread thread;

    private Changes(Target target, Thread thread) {
        this.target = target;
        this.thread = thread;
    }

    /** Begins with the changes that a property names; with none where it is not given. */
    static Changes begin(String property, Properties properties, Target target) throws Exception {
        String given = properties.getProperty(property);
        if (given == null) {
            return new Changes(target, null);
        }
        List<Change> changes = new ArrayList<>(parse(property, given));
        while (!changes.isEmpty() && changes.get(0).second == 0) {
            make(changes.remove(0), target);
        }
        long began = System.nanoTime();
        Thread thread = new Thread(() -> makeAll(changes, began, target), "changes");
        thread.setDaemon(true);
        thread.start();
        return new Changes(target, thread);
    }

    /** The changes that a text names, in the order of their seconds. */
    static List<Change> parse(String property, String given) {
        List<Change> changes = Arrays.stream(given.split(",", -1))
                .map(text -> change(property, given, text))
                .toList();
        for (int number = 1; number < changes.size(); number++) {
            if (changes.get(number).second <= changes.get(number - 1).second) {
                throw refused(property, given);
            }
        }
        return changes;
    }

    private static Change change(String property, String given, String text) {
        String[] parts = text.strip().split(":", 2);
        if (parts.length < 2 || !parts[0].matches("[0-9]{1,6}") || parts[1].isEmpty()) {
            throw refused(property, given);
        }
        return new Change(Long.parseLong(parts[0]), parts[1]);
    }

    private static IllegalArgumentException refused(String property, String given) {
        return new IllegalArgumentException(
                property + " = " + given + ": give SECOND:CHANGE,SECOND:CHANGE, each at a later second than the one before");
    }

    private static void makeAll(List<Change> changes, long began, Target target) {
        for (Change change : changes) {
            try {
                long wait = began + TimeUnit.SECONDS.toNanos(change.second) - System.nanoTime();
                TimeUnit.NANOSECONDS.sleep(Math.max(0, wait));
                say(target.found());
                make(change, target);
            } catch (InterruptedException ended) {
                return;
            } catch (Exception failure) {
                Shared.ofThisProcess().failed("the change to", change.to, failure);
            }
        }
    }

    private static void make(Change change, Target target) throws Exception {
        say("to " + change.to);
        long began = System.nanoTime();
        target.change(change.to);
        say(String.format(Locale.ROOT, "is %s after %.3f ms", change.to, (System.nanoTime() - began) / 1e6));
    }

    private static void say(String what) {
        if (!what.isEmpty()) {
            System.err.println("change: " + what);
        }
    }

    /** Makes no further change, and says what is found at the end. */
    @Override
    public void close() {
        if (thread == null) {
            return;
        }
        thread.interrupt();
        try {
            thread.join();
        } catch (InterruptedException ending) {
            Thread.currentThread().interrupt();
        }
        say(target.found());
    }
}

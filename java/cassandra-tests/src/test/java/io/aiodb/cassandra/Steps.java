package io.aiodb.cassandra;

import com.sun.jdi.Bootstrap;
import com.sun.jdi.Method;
import com.sun.jdi.ReferenceType;
import com.sun.jdi.VMDisconnectedException;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.connect.AttachingConnector;
import com.sun.jdi.connect.Connector;
import com.sun.jdi.connect.IllegalConnectorArgumentsException;
import com.sun.jdi.event.BreakpointEvent;
import com.sun.jdi.event.ClassPrepareEvent;
import com.sun.jdi.event.Event;
import com.sun.jdi.event.EventSet;
import com.sun.jdi.request.BreakpointRequest;
import com.sun.jdi.request.ClassPrepareRequest;
import com.sun.jdi.request.EventRequest;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Sees, as a debugger does, which of some methods a node's process enters, and ends it at one of them. So the node needs no
 * code that is there for tests.
 */
final class Steps implements AutoCloseable {
    private static final int LOOKS = 600;
    private static final int LOOK_MS = 500;

    private final Map<String, Set<String>> methods;
    private final int last;
    private final Runnable end;
    private final VirtualMachine machine;
    private final Thread thread = new Thread(this::watch, "steps");
    private final List<String> seen = new ArrayList<>();

    /**
     * @param port which the process was given in {@link #options}
     * @param methods names of classes, and of methods of each; at each call of one a step begins
     * @param last which step is not done any more; the first is 1
     * @param end ends the process
     */
    Steps(int port, Map<String, Set<String>> methods, int last, Runnable end) {
        this.methods = methods;
        this.last = last;
        this.end = end;
        this.machine = attach(port);
        methods.keySet().forEach(this::request);
        thread.start();
    }

    /** What a virtual machine must be started with. */
    static String options(int port) {
        return "-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:" + port;
    }

    private static VirtualMachine attach(int port) {
        AttachingConnector connector = Bootstrap.virtualMachineManager().attachingConnectors().stream()
                .filter(each -> each.transport().name().equals("dt_socket"))
                .findFirst()
                .orElseThrow();
        Map<String, Connector.Argument> arguments = connector.defaultArguments();
        arguments.get("hostname").setValue("127.0.0.1");
        arguments.get("port").setValue(Integer.toString(port));
        try {
            return connector.attach(arguments);
        } catch (IOException | IllegalConnectorArgumentsException failure) {
            throw new AssertionError("the node cannot be watched", failure);
        }
    }

    private void request(String name) {
        ClassPrepareRequest prepared = machine.eventRequestManager().createClassPrepareRequest();
        prepared.addClassFilter(name);
        prepared.setSuspendPolicy(EventRequest.SUSPEND_EVENT_THREAD);
        prepared.enable();
        machine.classesByName(name).forEach(this::stopIn);
    }

    private void stopIn(ReferenceType type) {
        for (Method method : type.methods()) {
            if (methods.get(type.name()).contains(method.name()) && method.location() != null) {
                BreakpointRequest entered = machine.eventRequestManager().createBreakpointRequest(method.location());
                entered.setSuspendPolicy(EventRequest.SUSPEND_EVENT_THREAD);
                entered.enable();
            }
        }
    }

    private void watch() {
        try {
            while (true) {
                EventSet events = machine.eventQueue().remove();
                for (Event event : events) {
                    if (event instanceof ClassPrepareEvent prepared) {
                        stopIn(prepared.referenceType());
                    } else if (event instanceof BreakpointEvent entered && isLast(entered)) {
                        end.run();
                    }
                }
                events.resume();
            }
        } catch (VMDisconnectedException | InterruptedException ended) {
            // Either the process ended or the test has seen enough.
        }
    }

    private synchronized boolean isLast(BreakpointEvent entered) {
        Method method = entered.location().method();
        String type = method.declaringType().name();
        seen.add(type.substring(type.lastIndexOf('.') + 1) + "." + method.name());
        return seen.size() == last;
    }

    /** The steps that were begun. */
    synchronized List<String> seen() {
        return List.copyOf(seen);
    }

    /** Waits until the process ends or a step has begun; says whether it ended. */
    boolean awaitEndOr(String step) throws InterruptedException {
        for (int look = 0; look < LOOKS && thread.isAlive() && !seen().contains(step); look++) {
            thread.join(LOOK_MS);
        }
        boolean ended = seen().size() >= last;
        if (ended) {
            thread.join();
        }
        return ended;
    }

    @Override
    public void close() {
        try {
            machine.dispose();
        } catch (VMDisconnectedException ended) {
            // There is nothing left to let go of.
        }
        thread.interrupt();
        try {
            thread.join();
        } catch (InterruptedException interruption) {
            throw new AssertionError("interrupted", interruption);
        }
    }
}

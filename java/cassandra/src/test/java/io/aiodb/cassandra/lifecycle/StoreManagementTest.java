package io.aiodb.cassandra.lifecycle;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.cassandra.fixture.TemporaryStore;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import javax.management.Attribute;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.RuntimeMBeanException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The bean of a store, as those who connect by JMX see it. */
class StoreManagementTest {
    private static final long MIB = 1 << 20;
    private static final String BUDGET = "MemoryBudgetBytes";

    /** More than any machine has. */
    private static final long TOO_MUCH = 1L << 50;

    @TempDir
    Path directory;

    private final MBeanServer beans = ManagementFactory.getPlatformMBeanServer();
    private TemporaryStore store;
    private ObjectName name;

    @BeforeEach
    void showStore() throws JMException {
        store = new TemporaryStore(directory);
        StoreManagement.register(store.open());
        name = new ObjectName(StoreManagement.name(store.open()));
    }

    @AfterEach
    void closeStore() throws JMException {
        beans.unregisterMBean(name);
        store.close();
    }

    @Test
    void theBudgetIsChangedWhileTheStoreIsOpen() throws JMException {
        long usual = (Long) beans.getAttribute(name, BUDGET);
        setBudget(48 * MIB);
        assertEquals(48 * MIB, beans.getAttribute(name, BUDGET));
        for (long bytes : new long[] {1, -1}) {
            Throwable refusal = assertThrows(RuntimeMBeanException.class, () -> setBudget(bytes)).getCause();
            assertEquals(IllegalArgumentException.class, refusal.getClass());
            assertTrue(refusal.getMessage().contains("memory_bytes = " + bytes), refusal::getMessage);
        }
        assertEquals(48 * MIB, beans.getAttribute(name, BUDGET), "nothing was changed");
        setBudget(0);
        assertEquals(usual, beans.getAttribute(name, BUDGET));
    }

    @Test
    void whatAnOperatorShouldKnowIsShown() throws JMException {
        assertArrayEquals(new String[0], warnings());
        setBudget(TOO_MUCH);
        assertTrue(warnings().length == 1 && warnings()[0].contains("memory_bytes"), String.join("; ", warnings()));
        assertTrue((Long) beans.getAttribute(name, BUDGET) < TOO_MUCH, "no more than there is");
        assertEquals(-1L, beans.getAttribute(name, "MemoryFullSeconds"));
        assertEquals(-1L, beans.getAttribute(name, "DiskFullSeconds"));
        assertTrue((Long) beans.getAttribute(name, "MemoryBytes") > 0);
    }

    private String[] warnings() throws JMException {
        return (String[]) beans.getAttribute(name, "Warnings");
    }

    private void setBudget(long bytes) throws JMException {
        beans.setAttribute(name, new Attribute(BUDGET, bytes));
    }
}

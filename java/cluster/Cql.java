import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.Row;
import com.datastax.driver.core.Session;
import com.datastax.driver.core.exceptions.DriverException;

/** Runs CQL statements on a node, one after the other, and prints the rows of each. */
final class Cql {
    private Cql() {}

    public static void main(String[] arguments) {
        if (arguments.length < 2) {
            System.err.println("usage: Cql ADDRESS STATEMENT...");
            System.exit(2);
        }
        try (Cluster cluster = Cluster.builder().addContactPoint(arguments[0]).build();
                Session session = cluster.connect()) {
            for (int position = 1; position < arguments.length; position++) {
                for (Row row : session.execute(arguments[position])) {
                    System.out.println(row);
                }
            }
        } catch (DriverException failure) {
            System.err.println("cql: " + failure.getMessage());
            System.exit(1);
        }
    }
}

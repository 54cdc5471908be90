package io.aiodb.store.mysql;

import java.util.HashMap;
import java.util.Map;

/** MySQL does what every store must do also where single rows are read by stored procedures. */
final class MysqlProcedureContractTest extends MysqlContracts {
    MysqlProcedureContractTest() {
        super(1);
    }

    @Override
    protected Map<String, String> parameters() {
        Map<String, String> parameters = new HashMap<>(super.parameters());
        parameters.put("access", "procedure");
        return parameters;
    }
}

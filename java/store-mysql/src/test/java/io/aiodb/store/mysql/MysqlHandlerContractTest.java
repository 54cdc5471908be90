package io.aiodb.store.mysql;

import java.util.HashMap;
import java.util.Map;

/** MySQL does what every store must do also where single rows are read by the statement {@code HANDLER}. */
final class MysqlHandlerContractTest extends MysqlContracts {
    MysqlHandlerContractTest() {
        super(1);
    }

    @Override
    protected Map<String, String> parameters() {
        Map<String, String> parameters = new HashMap<>(super.parameters());
        parameters.put("access", "handler");
        return parameters;
    }
}

package io.aiodb.store.mysql;

import io.aiodb.store.ServerContract;

/** What all stores on MySQL say of their server. */
abstract class MysqlServerContract extends ServerContract {
    MysqlServerContract() {
        super("mysql");
    }

    @Override
    protected String late() {
        return "does not answer";
    }

    @Override
    protected String takenOver() {
        return "another process";
    }
}

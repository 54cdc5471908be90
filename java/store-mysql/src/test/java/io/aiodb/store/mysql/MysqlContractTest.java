package io.aiodb.store.mysql;

/** MySQL does what every store must do. */
final class MysqlContractTest extends MysqlContracts {
    MysqlContractTest() {
        super(3);
    }
}

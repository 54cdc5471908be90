"""Every store by its name. A new one is a file with a class and its line here."""

from types import MappingProxyType

from harness.stores.base import Store
from harness.stores.cassandra_table import AiodbTable, LmdbTable, RocksDbTable, StockTable
from harness.stores.embedded import Aiodb, AiodbLsm, Lmdb, RocksDb
from harness.stores.redis import Redis

STORES: MappingProxyType[str, Store] = MappingProxyType(
    {
        store.name: store
        for store in (
            *(Aiodb(), AiodbLsm(), RocksDb(), Lmdb(), Redis()),
            *(StockTable(), AiodbTable(), RocksDbTable(), LmdbTable()),
        )
    }
)

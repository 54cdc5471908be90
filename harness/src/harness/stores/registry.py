"""The stores by their names: the classes in the files of this package. A new store is a file with a class."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import MappingProxyType

from harness import stores
from harness.stores.base import Store


def _found() -> Iterator[Store]:
    # This file is being imported.
    for name in (file.name for file in pkgutil.iter_modules(stores.__path__) if file.name != "registry"):
        module = importlib.import_module(f"{stores.__name__}.{name}")
        for called, found in vars(module).items():
            of_file = inspect.isclass(found) and found.__module__ == module.__name__
            if of_file and issubclass(found, Store) and not called.startswith("_") and not inspect.isabstract(found):
                yield found()


def _by_name(found: Iterator[Store]) -> MappingProxyType[str, Store]:
    by_name: dict[str, Store] = {}
    for store in found:
        other = by_name.setdefault(store.name, store)
        if other is not store:
            raise ValueError(f"two stores are called {store.name}: {type(other).__name__}, {type(store).__name__}")
    return MappingProxyType(by_name)


STORES: MappingProxyType[str, Store] = _by_name(_found())

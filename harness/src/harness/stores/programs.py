"""The programs that a store needs beside YCSB."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from harness.stores.registry import STORES


def programs_of(store: str) -> Sequence[Path]:
    """Where they are; a bare name where one is missing, which the executor refuses."""
    return [Path(shutil.which(program) or program) for program in STORES[store].programs()]

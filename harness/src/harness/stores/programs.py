"""Programs of others, installed on this machine."""

import shutil
from pathlib import Path


def installed(program: str) -> Path:
    """Where it is; a bare name where it is missing, which the executor refuses."""
    return Path(shutil.which(program) or program)

"""What can go wrong in ways that a person can mend: each message says what was attempted, where, and what to do."""

from pathlib import Path


class HarnessError(Exception):
    """A failure that is shown as its message alone, without a trace."""


class PlanError(HarnessError):
    """A campaign file that cannot be run, refused before anything is started."""

    def __init__(self, path: Path, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")
        self.path = path
        self.line = line

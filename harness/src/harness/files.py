"""Files that are whole or absent, however the harness ends."""

import os
from pathlib import Path

# Characters of a log's line that a person is shown.
MAX_LINE = 300


def write_whole(path: Path, text: str) -> None:
    """Writes a file under another name first: nobody ever sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".new")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def last_lines(path: Path, count: int) -> list[str]:
    """The last lines of a log, long ones cut; none where there is no log."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[-count:]
    except FileNotFoundError:
        return []
    return [line if len(line) <= MAX_LINE else line[:MAX_LINE] + " ..." for line in lines]

"""TOML files, and where in them a value is written. The standard parser gives values without places, and a refused file
must name the line to mend."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import HarnessError, PlanError

_PART = re.compile(r'[A-Za-z0-9_\-]+|"[^"]*"')
_HEADER = re.compile(rf"^\s*\[\[?\s*((?:{_PART.pattern})(?:\s*\.\s*(?:{_PART.pattern}))*)\s*\]\]?\s*(#.*)?$")
_ASSIGNMENT = re.compile(r"^\s*([A-Za-z0-9_\-]+(?:\s*\.\s*[A-Za-z0-9_\-]+)*)\s*=")


class TomlLines:
    """The lines on which the tables and keys of one file begin, counted from 1.

    Files are plain: bare keys, one on a line; names of tables may be quoted. A key written otherwise is not found by
    itself, and the nearest table above it answers in its stead. A table without a line of its own begins with the first
    table in it.
    """

    def __init__(self, text: str) -> None:
        self._texts = text.splitlines()
        self._lines: dict[tuple[str, ...], int] = {}
        table: tuple[str, ...] = ()
        for number, line in enumerate(self._texts, start=1):
            if header := _HEADER.match(line):
                table = tuple(part.strip('"') for part in _PART.findall(header[1]))
                for length in range(1, len(table) + 1):
                    self._lines.setdefault(table[:length], number)
            elif assignment := _ASSIGNMENT.match(line):
                key = tuple(part.strip() for part in assignment[1].split("."))
                self._lines.setdefault(table + key, number)

    def of(self, *path: str) -> int:
        """The line of a key or table; of the nearest enclosing one that has a line, else the first."""
        for length in range(len(path), 0, -1):
            if line := self._lines.get(path[:length]):
                return line
        return 1

    def of_item(self, item: object, *path: str) -> int:
        """The line of one item of an array that goes over several lines; the key's line if it cannot be told."""
        first = self.of(*path)
        later = [line for line in self._lines.values() if line > first]
        last = min(later, default=len(self._texts) + 1)
        literal = re.compile(rf"""(?<![\w."'-]){re.escape(_literal(item))}(?![\w."'-])""")
        for number in range(first, last):
            code = self._texts[number - 1].split("#")[0].replace("'", '"')
            if number == first:
                code = code.partition("=")[2]
            if literal.search(code):
                return number
        return first


@dataclass(frozen=True)
class TomlFile:
    """What a file says, and where."""

    path: Path
    values: dict[str, Any]
    lines: TomlLines

    def refusal(self, message: str, *place: str) -> PlanError:
        """The error that names the line of a key or table."""
        return PlanError(self.path, self.lines.of(*place), message)


def read_toml(path: Path) -> TomlFile:
    """A whole file; raises PlanError with the line that is no TOML."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise HarnessError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise HarnessError(f"cannot read {path}: it is not UTF-8 ({error.reason})") from error
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PlanError(path, _decode_line(error, text), f"not TOML: {error}") from error
    return TomlFile(path, values, TomlLines(text))


def _decode_line(error: tomllib.TOMLDecodeError, text: str) -> int:
    words = str(error).partition("at line ")[2].split(",")[0]
    return int(words) if words.isdigit() else max(1, len(text.splitlines()))


def _literal(item: object) -> str:
    return f'"{item}"' if isinstance(item, str) else str(item)

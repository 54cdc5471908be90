"""Where in a TOML file a value is written. The standard parser gives values without places, and a refused campaign
must name the line to mend."""

import re

_HEADER = re.compile(r"^\s*\[\[?\s*([A-Za-z0-9_.\-]+)\s*\]\]?\s*(#.*)?$")
_ASSIGNMENT = re.compile(r"^\s*([A-Za-z0-9_\-]+(?:\s*\.\s*[A-Za-z0-9_\-]+)*)\s*=")


class TomlLines:
    """The lines on which the tables and keys of one file begin, counted from 1.

    Campaign files are plain: bare keys, one on a line. A key written otherwise is not found by itself, and the
    nearest table above it answers in its stead.
    """

    def __init__(self, text: str) -> None:
        self._texts = text.splitlines()
        self._lines: dict[tuple[str, ...], int] = {}
        table: tuple[str, ...] = ()
        for number, line in enumerate(self._texts, start=1):
            if header := _HEADER.match(line):
                table = tuple(header[1].split("."))
                self._lines.setdefault(table, number)
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


def _literal(item: object) -> str:
    return f'"{item}"' if isinstance(item, str) else str(item)

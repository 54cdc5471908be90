"""What a campaign file may say: the name, kind and bounds of each setting, so that a wrong one is refused with a
reason instead of being passed on to a program that fails an hour later."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

# One setting of a campaign, or one level of an axis.
Value = int | float | str

# The levels that make one point: axis to value.
Levels = Mapping[str, Value]


@dataclass(frozen=True)
class Field:
    """One setting that an experiment knows."""

    kind: type
    meaning: str
    least: float | None = None
    most: float | None = None
    choices: tuple[Value, ...] = ()
    # Taken where the file is silent; None where it must speak. Axes have none: their levels are always written.
    default: Value | None = None

    def refusal(self, value: object) -> str | None:
        """Why this cannot be the field's value; None if it can."""
        if isinstance(value, bool) or not isinstance(value, self._accepted()):
            return f"{value!r} is no {self._kind_name()}"
        if self.choices and value not in self.choices:
            return f"{value!r} is unknown: choose from {', '.join(str(choice) for choice in self.choices)}"
        if isinstance(value, int | float):
            if not math.isfinite(value):
                return f"{value} is no number to count with"
            if self.least is not None and value < self.least:
                return f"{value} is too small: at least {self.least:g}"
            if self.most is not None and value > self.most:
                return f"{value} is too large: at most {self.most:g}"
        return None

    def _accepted(self) -> tuple[type, ...]:
        return (int, float) if self.kind is float else (self.kind,)

    def _kind_name(self) -> str:
        return {int: "whole number", float: "number", str: "text"}[self.kind]


def levels_text(levels: Levels) -> str:
    """The levels as people read them: `index=lmdb depth=64`."""
    return " ".join(f"{axis}={value}" for axis, value in levels.items())

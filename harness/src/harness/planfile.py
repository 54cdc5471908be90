"""Reads campaign files. Whatever cannot be run is refused here, with file and line, before anything is started."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from harness.errors import PlanError
from harness.experiments.base import Experiment
from harness.experiments.registry import EXPERIMENTS
from harness.fields import Field, Value
from harness.plan import Campaign, Variant, runs
from harness.toml_lines import TomlFile, read_toml

# Every campaign has both sizes of its own levels; slices have one or both.
SIZES = ("quick", "night")
_VARIANT = re.compile(rf"({'|'.join(SIZES)})(-[a-z0-9]+)*")
MAX_REPETITIONS = 100
MAX_LEVELS = 64
MAX_RUNS = 10_000

_TOP_KEYS = {"title", "question", "source", "experiment"}
_WORDS = ("title", "question", "source")
_VARIANT_KEYS = {*_WORDS, "stores", "phases", "repetitions", "left_out", "axes", "parameters"}


def read(path: Path) -> Campaign:
    """The campaign of a file; raises PlanError with the line that is wrong."""
    file = read_toml(path)
    return _Reader(file).campaign(file.values)


class _Reader:
    """One reading of one file: every check knows where its value is written."""

    def __init__(self, file: TomlFile) -> None:
        self._file = file

    def campaign(self, values: Mapping[str, Any]) -> Campaign:
        named = [key for key in values if _VARIANT.fullmatch(key)]
        self._known(values, _TOP_KEYS | set(SIZES) | set(named))
        name = self._text(values, "experiment")
        if name not in EXPERIMENTS:
            self._refuse(f"experiment {name!r} is unknown: choose from {', '.join(EXPERIMENTS)}", "experiment")
        experiment = EXPERIMENTS[name]
        campaign = Campaign(
            self._file.path.stem,
            self._file.path,
            self._text(values, "title"),
            self._text(values, "question"),
            self._text(values, "source"),
            experiment,
            MappingProxyType({of: self._variant(experiment, values, of) for of in dict.fromkeys([*SIZES, *named])}),
        )
        for variant in campaign.variants.values():
            self._possible(campaign, variant)
        return campaign

    def _variant(self, experiment: Experiment, top: Mapping[str, Any], name: str) -> Variant:
        values = self._table(top, name)
        self._known(values, _VARIANT_KEYS, name)
        return Variant(
            name,
            self._names(values, experiment.stores, "store", name, "stores"),
            self._names(values, experiment.phases, "phase", name, "phases"),
            self._repetitions(values, name),
            self._axes(experiment, self._table(values, name, "axes"), name),
            self._parameters(experiment, values.get("parameters", {}), name),
            self._left_out(values, name),
            **{word: self._text(values, name, word) for word in _WORDS if word in values},
        )

    def _possible(self, campaign: Campaign, variant: Variant) -> None:
        planned = runs(campaign, variant)
        if len(planned) > MAX_RUNS:
            self._refuse(f"{len(planned)} runs are too many: at most {MAX_RUNS}", variant.name, "axes")
        for run in planned:
            if reason := campaign.experiment.refusal(run):
                self._refuse(f"{run.title}: impossible: {reason}", *self._blamed(variant, reason))

    def _blamed(self, variant: Variant, reason: str) -> tuple[str, ...]:
        """The setting that a reason speaks of, or else the variant: reasons name settings in quotes."""
        tables = {"axes": variant.axes, "parameters": variant.parameters}
        for table, settings in tables.items():
            for setting in settings:
                if f"`{setting}`" in reason:
                    return (variant.name, table, setting)
        if "`phases`" in reason:
            return (variant.name, "phases")
        return (variant.name,)

    def _names(self, values: Mapping[str, Any], known: tuple[str, ...], what: str, *path: str) -> tuple[str, ...]:
        names = self._list(values, *path)
        for name in names:
            if name not in known:
                message = f"{what} {name!r} is unknown here: choose from {', '.join(known)}"
                self._refuse_item(name, message, *path)
        return tuple(names)

    def _repetitions(self, values: Mapping[str, Any], variant: str) -> int:
        path = (variant, "repetitions")
        if "repetitions" not in values:
            self._refuse("`repetitions` is missing", variant)
        bounds = Field(int, "how often each point is measured", least=1, most=MAX_REPETITIONS)
        if reason := bounds.refusal(values["repetitions"]):
            self._refuse(f"repetitions: {reason}", *path)
        return int(values["repetitions"])

    def _axes(
        self, experiment: Experiment, values: Mapping[str, Any], variant: str
    ) -> MappingProxyType[str, tuple[Value, ...]]:
        self._known(values, set(experiment.axes), variant, "axes")
        for axis in experiment.axes:
            if axis not in values:
                self._refuse(f"axis `{axis}` is missing: {experiment.axes[axis].meaning}", variant, "axes")
        axes: dict[str, tuple[Value, ...]] = {}
        for axis in values:
            levels = self._list(values, variant, "axes", axis)
            for level in levels:
                if reason := experiment.axes[axis].refusal(level):
                    self._refuse_item(level, f"axis {axis}: {reason}", variant, "axes", axis)
            axes[axis] = tuple(levels)
        return MappingProxyType(axes)

    def _parameters(self, experiment: Experiment, values: object, variant: str) -> Mapping[str, Value]:
        if not isinstance(values, dict):
            self._refuse("`parameters` must be a table", variant, "parameters")
        self._known(values, set(experiment.parameters), variant, "parameters")
        parameters: dict[str, Value] = {}
        for name, bounds in experiment.parameters.items():
            value = values.get(name, bounds.default)
            if value is None:
                self._refuse(f"parameter `{name}` is missing: {bounds.meaning}", variant, "parameters")
            if reason := bounds.refusal(value):
                self._refuse(f"parameter {name}: {reason}", variant, "parameters", name)
            parameters[name] = value
        return MappingProxyType(parameters)

    def _left_out(self, values: Mapping[str, Any], variant: str) -> tuple[str, ...]:
        if "left_out" not in values:
            return ()
        words = values["left_out"]
        if not isinstance(words, list) or not all(isinstance(item, str) for item in words):
            self._refuse("`left_out` must be a list of texts", variant, "left_out")
        return tuple(words)

    def _list(self, values: Mapping[str, Any], *path: str) -> list[Any]:
        levels = values.get(path[-1])
        if levels is None:
            self._refuse(f"`{path[-1]}` is missing", *path[:-1])
        if not isinstance(levels, list) or not 1 <= len(levels) <= MAX_LEVELS:
            self._refuse(f"`{path[-1]}` must be a list of 1 to {MAX_LEVELS}", *path)
        for item in levels:
            if levels.count(item) > 1:
                self._refuse_item(item, f"{item!r} is listed twice", *path)
        return levels

    def _table(self, values: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
        table = values.get(path[-1])
        if not isinstance(table, dict):
            self._refuse(f"the table [{'.'.join(path)}] is missing", *path[:-1])
        return table

    def _text(self, values: Mapping[str, Any], *path: str) -> str:
        value = values.get(path[-1])
        if not isinstance(value, str) or not value.strip():
            self._refuse(f"`{path[-1]}` must be a text", *path)
        return value

    def _known(self, values: Mapping[str, Any], known: set[str], *path: str) -> None:
        for key in values:
            if key not in known:
                self._refuse(f"`{key}` is unknown here: choose from {', '.join(sorted(known))}", *path, key)

    def _refuse(self, message: str, *path: str) -> NoReturn:
        raise self._file.refusal(message, *path)

    def _refuse_item(self, item: object, message: str, *path: str) -> NoReturn:
        raise PlanError(self._file.path, self._file.lines.of_item(item, *path), message)

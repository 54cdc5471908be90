"""Which files of the harness itself a result depends on: another way to measure makes other results, another way to
draw them does not."""

import ast
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

PACKAGE = Path(__file__).parent

# Folders, and modules by their names' ends, that only read, judge, draw or announce results.
READING = ("report", "outcomes", "progress", "published", "results", "saturation", "scaling", "statistics")
# What imports all files of its folder, whatever their names.
FINDING = "stores/registry.py"


def measuring_files(experiment: Path) -> MappingProxyType[str, Path]:
    """The file of an experiment, what plans and executes it, and what these import of the harness, by names for
    people."""
    found: dict[str, Path] = {}
    wanted = [experiment, PACKAGE / "plan.py", PACKAGE / "execution.py"]
    while wanted:
        file = wanted.pop()
        name = str(file.relative_to(PACKAGE)) if file.is_relative_to(PACKAGE) else file.name
        if name not in found:
            found[name] = file
            wanted += [imported for imported in _imports(file) if imported.exists()]
            wanted += file.parent.glob("*.py") if name == FINDING else ()
    return MappingProxyType(dict(sorted(found.items())))


def _imports(file: Path) -> Iterator[Path]:
    """What may be modules of the harness that a file imports; of a name that is none there is no file."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == PACKAGE.name:
            modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            for words in (module.split(".")[1:] for module in modules):
                if words and not any(word.endswith(READING) for word in words):
                    yield PACKAGE.joinpath(*words).with_suffix(".py")

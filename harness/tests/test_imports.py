"""The order of the harness's modules: whoever reads one needs those below it, and none above."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from harness.measuring import PACKAGE


def order(package: Path) -> list[str]:
    """The modules of a package, each after all that it imports; raises CycleError. An import counts wherever it stands:
    within a function, or for types alone."""
    files = {".".join(file.relative_to(package.parent).with_suffix("").parts): file for file in package.rglob("*.py")}
    imports = {module: {name for name in _names(file) if name in files} for module, file in files.items()}
    return list(TopologicalSorter(imports).static_order())


def _names(file: Path) -> Iterator[str]:
    """What a file imports, and what may be modules of it."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))


def test_no_module_imports_one_that_imports_it() -> None:
    try:
        modules = order(PACKAGE)
    except CycleError as error:
        # The sorter names each module before the one that imports it.
        pytest.fail(f"{' imports '.join(reversed(error.args[1]))}: move what both sides need below them")
    assert modules.index("harness.rows") < modules.index("harness.results") < modules.index("harness.report.page")


@pytest.mark.parametrize(
    "back", ["from own import one", "def f():\n    import own.one", "if TYPE_CHECKING:\n    from own.one import A"]
)
def test_a_circle_is_found_wherever_its_imports_stand(tmp_path: Path, back: str) -> None:
    package = tmp_path / "own"
    package.mkdir()
    (package / "one.py").write_text("from own.two import B")
    (package / "two.py").write_text("import ast")
    assert order(package) == ["own.two", "own.one"]
    (package / "two.py").write_text(back)
    with pytest.raises(CycleError):
        order(package)

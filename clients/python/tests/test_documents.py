"""docs/server.md names what is tested, in the versions that the lock files have."""

import json
import re
from pathlib import Path

CHECKOUT = Path(__file__).parents[3]


def test_the_document_has_the_versions_that_are_tested() -> None:
    clients = CHECKOUT / "clients"
    python = re.findall(r"^([^ =]+)==(\S+)", (clients / "python/requirements.txt").read_text(), re.MULTILINE)
    node = json.loads((clients / "node/package.json").read_text())["dependencies"]
    go = re.findall(r"^\tgithub\.com/[^/]+/(\S+) (v\S+)$", (clients / "go/go.mod").read_text(), re.MULTILINE)
    lettuce = re.findall(r"<(lettuce)\.version>(\S+)</", (CHECKOUT / "java/pom.xml").read_text())
    locked = {"Python": dict(python), "Node": node, "Go": dict(go), "Java": dict(lettuce)}

    rows = re.findall(
        r"^\| (Python|Node|Go|Java) +\| (\S+) +\| (\S+) +\|", (CHECKOUT / "docs/server.md").read_text(), re.MULTILINE
    )
    assert len(rows) > 20
    for language, name, version in rows:
        assert locked[language].get(name) == version, f"{name} of {language} in docs/server.md"

"""What reports ask the experiment of the tests, as they ask the project's own."""

from types import MappingProxyType

import commands
import pytest

from harness.report.answers import registry as answers
from harness.report.figures import registry as figures


@pytest.fixture(autouse=True)
def _reports_know_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    name = commands.Commands.name
    monkeypatch.setattr(answers, "ANSWERS", MappingProxyType({**answers.ANSWERS, name: commands.answer}))
    monkeypatch.setattr(figures, "FIGURES", MappingProxyType({**figures.FIGURES, name: commands.figures}))

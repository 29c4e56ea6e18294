"""docs/privacy.md, which tests/test_printed.py runs, leaves out no relation and no method."""

from __future__ import annotations

from pathlib import Path

from fedcore import algorithms
from fedcore.privacy.events import NEIGHBOURS

PAGE = Path(__file__).parents[2] / "docs" / "privacy.md"
WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()


def test_every_relation_is_explained():
    text = PAGE.read_text(encoding="utf-8")
    for name in NEIGHBOURS:
        assert f"| `{name}` |" in text


def test_the_number_of_methods_is_right():
    private = [
        name
        for name in algorithms.names()
        if "epsilon" in algorithms.get(name).module.Params.__dataclass_fields__
    ]
    assert PAGE.read_text(encoding="utf-8").split("\n\n")[1].lower().startswith(WORDS[len(private)])

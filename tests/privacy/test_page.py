"""docs/privacy.md is run, and leaves out no relation and no private method."""

from __future__ import annotations

import doctest
from pathlib import Path

from fedcore import algorithms
from fedcore.privacy.events import NEIGHBOURS

PAGE = Path(__file__).parents[2] / "docs" / "privacy.md"
WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()


def test_the_page_says_what_happens():
    failed, tried = doctest.testfile(
        str(PAGE), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert tried > 10 and failed == 0


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

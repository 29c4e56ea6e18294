"""docs/faults.md has a line for every fault that a test injects, and nothing was lost."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def script(docs_script):
    return docs_script("faults")


@pytest.fixture(scope="module")
def marks(script):
    return script.collected()


def test_the_page_is_up_to_date_and_nothing_is_lost(script, marks):
    expected = {(row.fault, row.untried, script.escaped(row.told)) for row in script.rows(marks)}
    text = script.PAGE.read_text(encoding="utf-8")
    lines = [found.groups() for found in map(script.LINE.match, text.splitlines()) if found]
    shown = {
        (fault, int(untried or 0) + int(injected), told)
        for fault, untried, injected, survived, lost, told in lines
    }
    assert shown == expected, "run `make faults`"
    assert all(lost == "0" and injected == survived for _, _, injected, survived, lost, _ in lines)


def strings(path: Path) -> list[str]:
    """Strings of a test file, those of the marks left out; patterns without their backslashes."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    marks = [call for call in calls if ast.unparse(call.func) == "pytest.mark.fault"]
    inside = {id(part) for mark in marks for part in ast.walk(mark)}
    return [
        node.value.replace("\\", "")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside
    ]


def test_lines_of_faults_that_a_run_does_not_try_are_kept(script):
    every = [
        script.Row("disk", name, "told", untried=2) for name in ("full", "gone", "new", "more")
    ]
    shown = [
        script.Row("disk", "full", "told", survived=2),
        script.Row("disk", "gone", "told", survived=2),
        script.Row("disk", "more", "told", survived=1),  # one case less than today
    ]
    found = [script.Row("disk", "full", "told", survived=1, lost=1), every[1]]
    assert script.with_kept(found, every, script.page(shown)) == [found[0], shown[1], *every[2:]]


def test_what_the_page_says_is_asserted_in_the_test(marks):
    said = {(mark["test"].partition("::")[0], mark["told"]) for mark, _ in marks}
    known = {path: strings(ROOT / path) for path, _ in said}
    lacking = [
        (path, part)
        for path, told in sorted(said)
        for part in map(str.strip, told.split("…"))
        if not any(part in text for text in known[path])
    ]
    assert lacking == []


def test_files_that_are_named_are_the_only_ones_that_run(script, monkeypatch):
    """Also by a path below the folder where one is, or with a test's name."""
    asked = []
    monkeypatch.setattr(pytest, "main", lambda args, plugins: asked.append(args) or 2)
    monkeypatch.chdir(ROOT)
    for name in ("tests/files/test_hdf5.py", f"{ROOT}/tests/files/test_hdf5.py::test_x"):
        script.main([name])
        assert asked.pop() == ["-m", "fault", name]
    script.main([])
    assert len(asked.pop()) > 20


def test_lines_are_counted(script):
    mark = {"kind": "disk", "fault": "full", "told": "no space", "times": 1}
    outcomes = [(mark, "passed"), (mark | {"times": 3}, "passed"), (mark, "failed")]
    outcomes.append((mark | {"fault": "gone"}, "skipped"))
    lines = script.rows(outcomes)
    assert [(row.fault, row.injected, row.lost, row.untried) for row in lines] == [
        ("full", 5, 1, 0), ("gone", 0, 0, 1),
    ]  # fmt: skip
    text = script.page(lines)
    assert "| full | 5 | 4 | 1 | no space |" in text and "| gone (1 not tried) | 0 |" in text
    assert "2 faults, injected 5 times: 1 lost." in text
    assert json.loads(json.dumps(outcomes[0][0])) == mark

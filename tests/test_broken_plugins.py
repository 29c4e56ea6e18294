"""Broken plug-ins of other packages are named with the reason, and nothing else is in their way."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from processes import python

PARTS = """from dataclasses import dataclass
from fedcore import algorithms

def run(*a): ...
def communication(*a): ...
"""
PARAMS = "@dataclass(frozen=True)\nclass Params:\n    n_components: int\n    start: object = None\n"
DECLARED = """ALGORITHM = algorithms.Algorithm(
    paper='x', parameters=Params, run=run, communication=communication
)
"""
BROKEN = {
    "syntax": ("def run(:\n", "SyntaxError: invalid syntax"),
    "absent": (
        "import no_such_package\n",
        "ModuleNotFoundError: No module named 'no_such_package'",
    ),
    "ending": ("raise SystemExit(3)\n", "SystemExit: 3"),
    "undeclared": (PARTS + PARAMS, "broken_undeclared has no ALGORITHM"),
    "no_paper": (PARTS + PARAMS + DECLARED.replace("paper='x', ", ""), "'paper'"),
    "wrong_paper": (PARTS + PARAMS + DECLARED.replace("'x'", "7"), "paper=7"),
    "no_params": (PARTS + "Params = 3\n" + DECLARED, "parameters=3 without n_components and start"),
    "no_task": (PARTS + PARAMS + DECLARED.replace("'x'", "'x', task='magic'"), "task='magic'"),
    "no_run": (PARTS + PARAMS + DECLARED.replace("=run", "=None"), "run=None"),
}
RECORDS = "def run(federation, params, rng, record): record(0, basis=[[1.0, 1.0]] * 300)"
LATE = PARTS.replace("def run(*a): ...", RECORDS) + PARAMS + DECLARED  # fails in fedcore's code
ENTRIES = """
late = broken_late
ssi = one_that_is_hidden
[fedcore.metrics]
bad = broken_syntax
none = broken_no_paper
[fedcore.generators]
bad = broken_absent
[fedcore.datasets]
bad = broken_ending:load
"""


@pytest.fixture
def fedcore_(tmp_path, installed):
    """Run a command of fedcore beside a package whose every plug-in is broken."""
    for name, (source, _) in BROKEN.items():
        (tmp_path / f"broken_{name}.py").write_text(source)
    (tmp_path / "broken_late.py").write_text(LATE)
    algorithms = "".join(f"{name} = broken_{name}\n" for name in BROKEN)
    installed(tmp_path, "broken", f"[fedcore.algorithms]\ngone = not_there\n{algorithms}{ENTRIES}")

    def call(*words, status=0):
        start = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        code = f"{start}from fedcore.cli import main; main()"
        done = python("-c", code, *words, status=status)
        assert "Traceback" not in done.stdout + done.stderr, done.stderr
        return done

    return call


LISTS = {  # a list, one of fedcore's own in it, and those of the package's that it leaves out
    "methods": ("block_krylov", {"gone": "not_there", "ssi": "ignored"} | {
        name: reason for name, (_, reason) in BROKEN.items()}),
    "metrics": ("subspace_distance", {"bad": "SyntaxError", "none": "metrics"}),
    "generators": ("low_rank", {"bad": "broken_absent"}),
    "datasets": ("w8a", {"bad": "SystemExit: 3"}),
}  # fmt: skip


@pytest.mark.parametrize("name", LISTS)
def test_the_lists_name_each_with_its_reason_and_go_on(fedcore_, name):
    own, broken = LISTS[name]
    done = fedcore_("list", name)
    assert own in done.stdout
    for plugin, reason in broken.items():
        (line,) = (line for line in done.stderr.splitlines() if f"'{plugin}'" in line)
        assert line.startswith("Warning: ") and reason in line


def test_methods_that_are_whole_run_and_broken_ones_end_in_a_sentence(fedcore_):
    fedcore_("run", "one_shot", "w8a", "--components", "2", "--surrogate")
    for words, reason in (
        (("run", "no_paper", "w8a", "--components", "2", "--surrogate"), "'paper'"),
        (("run", "one_shot", "bad", "--components", "2"), "cannot be imported"),
        (("check", "syntax"), "SyntaxError"),
        (("run", "late", "w8a", "--components", "2", "--surrogate"), "broken_late.py, line 4"),
    ):
        done = fedcore_(*words, status=1)
        assert reason in done.stdout + done.stderr, (words, done.stdout, done.stderr)


def test_the_contract_tests_of_others_can_be_collected(fedcore_, tmp_path):
    """The fixture has installed the package beside them."""
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    collect = ("-m", "pytest", "-q", "--collect-only", Path(__file__).with_name("contract"))
    python(*collect, "-k", "one_shot", env={**os.environ, "PYTHONPATH": paths})


def test_the_doctor_lists_them_all(fedcore_):
    done = fedcore_("doctor", status=1)
    broken = [line for line in done.stdout.splitlines() if line.startswith("broken")]
    assert len([line for line in broken if "of the package broken: " in line]) == len(BROKEN) + 5

"""Writes docs/faults.md from the tests that inject faults; `make faults` runs them.

Such a test has a mark, ``@pytest.mark.fault(kind, fault, told=…, times=…)``, and passes when
nothing was lost. `told` is what the user reads, as the test asserts it; "…" stands for what varies.
`times` is how often one case injects the fault, at least. Tests with one kind and one fault make
one line.

With ``--keep``, lines of faults that this run has not tried stay as the page has them: engines that
one environment does not have are tried in another. Files may be named behind it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fedcore.reports.tables import escaped

ROOT = Path(__file__).parents[1]
PAGE = Path(__file__).with_suffix(".md")
MARK = "pytest.mark.fault("
NAME = "fault"  # of the property that tests/conftest.py gives to every such test
TEXT = """# Faults

This page is written by `make faults` from the tests that inject these faults; a test fails when it
is stale. A fault is survived when its test passes: then nothing was lost. That is, what had been
made stays whole, the next run makes what is missing, with the same bytes as a run without the
fault, and what cannot be used is refused with the sentence that stands here ("…" is what varies).
The times of an injection are what its test says of itself.

{total}
"""
LINE = re.compile(r"^\| (.+?)(?: \((\d+) not tried\))? \| (\d+) \| (\d+) \| (\d+) \| (.*) \|$")
KINDS = {
    "killed": "Killed",
    "failed": "Failed jobs",
    "two": "Two at once",
    "disk": "Disks and permissions",
    "machine": "The user's machine",
    "damaged": "Damaged files",
    "server": "Servers and mirrors",
    "hostile": "Hostile files",
    "client": "Clients and methods",
    "configuration": "Configuration",
    "cluster": "Cluster",
}


class Row(NamedTuple):
    """A line of the page: how often its fault was injected, and how often something was lost."""

    kind: str
    fault: str
    told: str
    survived: int = 0
    lost: int = 0
    untried: int = 0

    @property
    def injected(self) -> int:
        """Without what was not tried."""
        return self.survived + self.lost


Outcomes = list[tuple[dict[str, Any], str]]  # the properties of a mark, and passed, failed, skipped


class Recorder:
    """A plugin of pytest that keeps what became of every test of a fault."""

    def __init__(self) -> None:
        self.outcomes: Outcomes = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the outcome of the call, or of a set-up without one."""
        if report.when == "call" or (report.when == "setup" and not report.passed):
            found = dict(report.user_properties)
            if NAME in found:
                self.outcomes.append((found[NAME], report.outcome))


class Collector:
    """A plugin of pytest that keeps the marks of the tests that would run."""

    def __init__(self) -> None:
        self.outcomes: Outcomes = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep every mark."""
        found = [dict(item.user_properties).get(NAME) for item in session.items]
        self.outcomes = [(mark, "skipped") for mark in found if mark]


def files() -> list[str]:
    """Return the files with tests of faults."""
    found = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(path) for path in found if MARK in path.read_text(encoding="utf-8")]


def rows(outcomes: Outcomes) -> list[Row]:
    """Return the lines of the page, in the order of kinds and then of words."""
    found: dict[tuple[str, str], Row] = {}
    place = {"passed": "survived", "failed": "lost", "skipped": "untried"}
    for mark, outcome in outcomes:
        key, field = (mark["kind"], mark["fault"]), place[outcome]
        row = found.setdefault(key, Row(*key, mark["told"]))
        told = max(row.told, mark["told"], key=len)
        changed = {"told": told, field: getattr(row, field) + mark["times"]}
        found[key] = row._replace(**changed)
    order = list(KINDS)
    return sorted(found.values(), key=lambda row: (order.index(row.kind), row.fault))


def with_kept(found: list[Row], every: list[Row], text: str) -> list[Row]:
    """Return the lines of all faults: those of a run and, of faults not tried in it, a page's.

    Parameters
    ----------
    found, every : list of Row
        What the run found, and what all tests would.
    text : str
        The page. A line that says another number of injections, or another sentence, is not kept.
    """
    tried = {row[:2]: row for row in found if row.injected and not row.untried}
    shown = {m[1]: m for m in map(LINE.match, text.splitlines()) if m}
    rows = []
    for row in every:
        old = shown.get(row.fault)
        if row[:2] in tried:
            rows.append(tried[row[:2]])
        elif old and (int(old[2] or 0) + int(old[3]), old[6]) == (row.untried, escaped(row.told)):
            rows.append(
                row._replace(survived=int(old[4]), lost=int(old[5]), untried=int(old[2] or 0))
            )
        else:
            rows.append(row)
    return rows


def page(lines: list[Row]) -> str:
    """Return the page."""
    injected, lost = sum(row.injected for row in lines), sum(row.lost for row in lines)
    total = f"{len(lines)} faults, injected {injected} times: {lost} lost."
    if untried := sum(row.untried for row in lines):
        total += (
            f" {untried} more were not tried when this page was written: they need SLURM (`make "
            "test-cluster`), an MPI, PyTorch or root, or were "
            "left out of that run."
        )
    text = TEXT.format(total=textwrap.fill(total, 100, break_on_hyphens=False))
    for kind, title in KINDS.items():
        here = [row for row in lines if row.kind == kind]
        if here:
            text += f"\n## {title}\n\n| fault | injected | survived | lost | what is said |\n"
            text += "| :-- | --: | --: | --: | :-- |\n" + "".join(map(_line, here))
    return text


def _line(row: Row) -> str:
    fault = row.fault + f" ({row.untried} not tried)" * (row.untried > 0)
    return f"| {fault} | {row.injected} | {row.survived} | {row.lost} | {escaped(row.told)} |\n"


def collected() -> Outcomes:
    """Return the marks of all tests of faults, from a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--collect"], cwd=ROOT, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"the tests cannot be collected: {(done.stdout + done.stderr)[-2000:]}")
    return [(mark, outcome) for mark, outcome in json.loads(done.stdout.splitlines()[-1])]


def main(args: list[str]) -> int:
    """Run the tests and write the page, or collect them and print their marks."""
    if "--collect" in args:
        plugin = Collector()
        status = pytest.main(["--collect-only", "-qq", "-m", NAME, *files()], plugins=[plugin])
        print(json.dumps(plugin.outcomes))
        return int(status)
    recorder, keep = Recorder(), "--keep" in args
    args = [arg for arg in args if arg != "--keep"]
    named = {str(Path(arg.partition("::")[0]).resolve()) for arg in args}
    chosen = [] if named & set(files()) else files()
    status = pytest.main(["-m", NAME, *args, *chosen], plugins=[recorder])
    if status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        found = rows(recorder.outcomes)
        if keep:
            found = with_kept(found, rows(collected()), PAGE.read_text(encoding="utf-8"))
        PAGE.write_text(page(found), encoding="utf-8")
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What pages consist of: which figures and curves show an item, and which items a figure shows.

Nobody types these links. A figure's file names the experiments that it shows, and its name or its
caption begins with the paper's figure. An item's id and source name the paper's figure or table,
and the rows that judge it name their experiments; of an item without rows, these are the
experiments that reproduce its figure or table.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedcore.reports import tables
from fedcore.repro.plan.job_times import Took
from fedcore.repro.verdicts.verdicts import Verdict

MOST = 3  # figures, or curves, of one item
PLACE = re.compile(
    r"\b(fig|table)(?:ure)?(?:s(?= \d))? ?(s?\d+[a-z]?)(?: and (\d+[a-z]?))?(?![a-z\d])",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Evidence:
    """What shows an item: figures, and places on the page of curves with their experiments."""

    figures: list[Exhibit] = field(default_factory=list)
    curves: list[tuple[str, str]] = field(default_factory=list)


def places(text: str) -> set[str]:
    """Return figures and tables that a text names, such as ``fig2a`` and ``table4``."""
    return {
        kind.lower() + number.lower()
        for kind, *numbers in PLACE.findall(text.replace("_", " ").replace("-", " "))
        for number in filter(None, numbers)
    }


def meet(printed: set[str], ours: set[str]) -> bool:
    """Whether places are the same; a figure without a letter has all panels of its number."""
    wholes = [{re.sub("[a-z]$", "", place) for place in places} for places in (printed, ours)]
    return bool(printed & (ours | wholes[1]) or wholes[0] & ours)


def named(figure: Exhibit) -> set[str]:
    """Return the paper's figures and tables that a figure of ours shows, by name and caption."""
    head = figure.caption.partition(",")[0]
    return places(figure.name) | (places(head) if PLACE.match(head) else set())


def drawn_by(figure: Exhibit, verdict: Verdict) -> bool:
    """Whether a figure of ours shows the paper's figure or table of an item."""
    return meet(_printed(verdict), named(figure))


def experiments(
    verdict: Verdict, rows: Collection[str], asked: Any, plan: Mapping[str, Any]
) -> list[str]:
    """Return the experiments by which an item is judged, or would be.

    Parameters
    ----------
    verdict : Verdict
    rows : collection of str
        Experiments of the rows that judge it.
    asked : str, list or None
        Experiments that its claim selects.
    plan : mapping
        Experiments of the plan, with what each reproduces.
    """
    chosen = set(rows) or set([asked] if isinstance(asked, str) else asked or [])
    if not chosen & set(plan):
        printed = _printed(verdict)
        chosen = {name for name in plan if meet(printed, places(plan[name]["reproduces"]))}
    return [name for name in plan if name in chosen]


def figures(verdict: Verdict, judging: Collection[str], drawn: list[Exhibit]) -> list[Exhibit]:
    """Return the figures of an item: of its place in the paper, or else of its experiments.

    The first are those that show its experiments.
    """
    mine = set(judging)
    of_place = [one for one in drawn if drawn_by(one, verdict)]
    of_runs = [one for one in drawn if mine & one.experiments]
    return sorted(of_place or of_runs, key=lambda one: not mine & one.experiments)[:MOST]


def curves(
    judging: Iterable[str], problems: Collection[str], run: Collection[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Return places on the page of curves, with the experiment that each shows."""
    found = []
    for experiment in judging:
        there = [problem for name, problem in run if name == experiment]
        if there:
            one = next((p for p in there if p in problems), None) if len(problems) == 1 else None
            found.append((f"{experiment}/{one}" if one else experiment, experiment))
    return found[:MOST]


def _printed(verdict: Verdict) -> set[str]:
    return places(verdict.source) | places(verdict.id)


@dataclass(frozen=True)
class PrintedCell:
    """A cell of a printed table: what is printed, and the verdict on it if it has one."""

    printed: str
    verdict: Verdict | None


@dataclass(frozen=True)
class PrintedTable:
    """A table as the paper has it; a row is a label and its cells."""

    source: str
    caption: str
    columns: list[str]
    rows: list[tuple[str, list[PrintedCell]]]


@dataclass(frozen=True)
class Exhibit:
    """A figure or a table of ours: its name, caption and file, and the experiments of a figure."""

    name: str
    caption: str
    file: Path
    experiments: frozenset[str] = frozenset()

    @property
    def below(self) -> str:
        """The text of a table's file without the caption at its head."""
        text = self.file.read_text(encoding="utf-8")
        return text.removeprefix(f"{tables.escaped(self.caption)}\n\n")


@dataclass(frozen=True)
class Job:
    """A cell of an experiment, with where its history comes from and what it took."""

    path: str
    experiment: str
    algorithm: str
    name: str
    problem: str
    label: str
    status: str
    repeats: int
    params: dict[str, Any]
    about: dict[str, Any]
    took: Took | None

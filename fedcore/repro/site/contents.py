"""What the pages of a paper consist of: cells of tables, figures and tables of ours, and jobs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedcore.reports import tables
from fedcore.repro.verdicts.verdicts import Verdict


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
    seconds: float | None
    memory: float | None

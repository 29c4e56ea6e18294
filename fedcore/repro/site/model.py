"""What the pages of the site show, gathered from results and claims files."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import h5py

from fedcore.experiments.cell import Cell
from fedcore.files import checksums
from fedcore.reports import tables
from fedcore.reports.tables import Row
from fedcore.repro.config import claims as claims_files
from fedcore.repro.config import papers as paper_files
from fedcore.repro.plan.job_costs import Took, measured
from fedcore.repro.site.left_out import by_reason
from fedcore.repro.verdicts import answers, measurements, verdict_pages
from fedcore.repro.verdicts.verdicts import Verdict
from fedcore.words import counted

LONG = 40


@dataclass(frozen=True)
class PrintedTable:
    """A table as the paper has it; a row is a label, its cells, and the verdicts that judge it."""

    source: str
    caption: str
    columns: list[str]
    rows: list[tuple[str, list[str], list[Verdict]]]


@dataclass(frozen=True)
class Exhibit:
    """A figure or a table of ours: its name, caption and file."""

    name: str
    caption: str
    file: Path

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
    problem: str
    label: str
    status: str
    repeats: int
    params: dict[str, Any]
    about: dict[str, Any]
    took: Took | None


@dataclass(frozen=True)
class RunNotes:
    """The run that an answer is of: its date and commit, and what pages say of it."""

    date: str
    commit: str
    lines: list[str]


@dataclass(frozen=True)
class Judged:
    """The cells of a table of ours that a verdict rests on.

    `rows` are their values as text, without those after the first `LONG` rows; `all_rows` is how
    many there are; `experiments` are those that the rows name.
    """

    table: str
    columns: list[str]
    rows: list[list[str]]
    all_rows: int
    experiments: set[str]


def _numbers(rows: Sequence[Row], besides: set[str]) -> list[str]:
    """Return the other columns that hold numbers, where they differ or there is one row."""
    names = [name for name in rows[0] if name not in besides]
    found = {name: {row[name] for row in rows if isinstance(row[name], float)} for name in names}
    return [name for name in names if len(found[name]) > 1 or (found[name] and len(rows) == 1)]


def judged_by(select: Mapping[str, Any], rows: Sequence[Row]) -> Judged:
    """Return what a page shows of the rows of a table that a cell of a claim selects."""
    named = [*select["where"], *select["points"], "repeat"]
    columns = [name for name in dict.fromkeys(named) if name in rows[0]]
    columns = [name for name in columns if name != select["column"]] + [select["column"]]
    if all(isinstance(row[columns[-1]], bool | None) for row in rows):  # what it is read off
        columns[-1:-1] = _numbers(rows, set(columns))
    shown = [[tables.show(row[name]) for name in columns] for row in rows[:LONG]]
    experiments = {str(row["experiment"]) for row in rows if row.get("experiment")}
    return Judged(select["table"], columns, shown, len(rows), experiments)


class Paper:
    """One paper's part of the site.

    Attributes
    ----------
    judged : bool
        False for a study of one's own, of which nothing is printed.
    verdicts, printed_items, checks : list of Verdict
        All, those on what is printed, and the checks of this software.
    plan : dict
        Empty for a paper of which nothing was run; then its name is its title.
    plan_file : path
    title, citation : str
    missing : dict of str to list of str
        What was not run, by the reason.
    question : str
        What the headline claims answer.
    """

    def __init__(self, results: Path, name: str, root: Path) -> None:
        self.name, self._results = name, results
        self.plan_file = results / "plans" / f"{name}.json"
        checksums.require(self.plan_file, "plan")
        self.plan: dict[str, Any] = {}
        if self.plan_file.is_file():
            self.plan = json.loads(self.plan_file.read_text(encoding="utf-8"))
        self.title, self.citation = self.plan.get("title", name), self.plan.get("citation", "")
        self.missing = by_reason(self.plan.get("missing", {}))
        self._entry = self.plan.get("entry", name)
        judged = results / "verdicts" / f"{name}.tsv"
        self.judged = judged.is_file()
        self.verdicts = verdict_pages.read(judged) if self.judged else []
        self.printed_items = verdict_pages.printed_items(self.verdicts)
        self.checks = verdict_pages.checks(self.verdicts)
        self.quick = verdict_pages.is_quick(self.verdicts)
        self.claims_file = paper_files.at(self._entry, root).claims
        self.claimed = claims_files.read(self.claims_file)  # of a study without the file, nothing
        self.question = self.claimed.get("question", "")
        kept = self.claims_file.with_name("verdicts.tsv")
        #: Verdicts with words: of this run, or those that are kept where this run is quick.
        self.told = self.verdicts
        if self.quick:
            known = {verdict.id for verdict in self.verdicts}
            read = verdict_pages.read(kept) if kept.is_file() else []
            self.told = [verdict for verdict in read if verdict.id in known]
        self._kept_runs = root / "kept" / "run.json"
        self._rows: dict[str, list[Row]] = {}

    @property
    def command_options(self) -> str:
        """What a command adds to know the paper: nothing for one of the checkout."""
        entry = self._entry
        return "" if entry == self.name else f" --config papers={shlex.quote(f'[{entry}]')}"

    @cached_property
    def run(self) -> RunNotes:
        """The run of the verdicts in `told`."""
        missing = sum(map(len, self.missing.values()))
        if not self.quick:
            commits = sorted({job.about.get("commit", "unknown") for job in self.jobs})
            hours = sum(job.took.cpu for job in self.jobs if job.took) / 3600
            cost = [counted(len(self.jobs), "history", "histories"), f"{hours:.2g} h of CPU"]
            date, commit = "", ", ".join(commits) or "unknown"
        else:
            runs = self._kept_runs
            notes = json.loads(runs.read_text(encoding="utf-8")) if runs.is_file() else {}
            known = notes.get(self.name, {"date": "", "commit": "unknown", "missing": ()})
            date, commit, missing = known["date"], known["commit"], len(known["missing"])
            cost = []
        left_out = f"without {counted(missing, 'part')} of the plan" if missing else ""
        lines = filter(None, [date, f"commit {commit}", *cost, left_out])
        return RunNotes(date, commit, list(lines))

    @property
    def picture(self) -> Exhibit | None:
        """The figure of the first headline claim that names one."""
        named = [self.figure(v) for v in answers.headlines(self.told)]
        return next(filter(None, named), None)

    def figure(self, verdict: Verdict) -> Exhibit | None:
        """Return the figure that an item's claim names, if it was drawn."""
        return next((one for one in self.figures if one.name == verdict.figure), None)

    @property
    def groups(self) -> list[tuple[str, list[Verdict]]]:
        """Verdicts by the place in the paper, in the order of the claims file."""
        found: dict[str, list[Verdict]] = {}
        for verdict in verdict_pages.printed_items(self.told):
            found.setdefault(verdict.source, []).append(verdict)
        return list(found.items())

    @property
    def tables(self) -> Iterator[PrintedTable]:
        """Printed tables, each row with its verdicts."""
        words = {verdict.id: verdict for verdict in self.told}
        judging: dict[tuple[str, str], list[Verdict]] = {}
        for item in self.claimed["items"]:
            if "row" in item and item["id"] in words:
                judging.setdefault(tuple(item["row"]), []).append(words[item["id"]])
        for name, table in self.claimed["tables"].items():
            labels = table["labels"]
            rows = [
                (labels.get(row, row), [cell or "" for cell in cells], judging.get((name, row), []))
                for row, cells in table["rows"].items()
            ]
            heads = [labels.get(column, column) for column in table["columns"]]
            yield PrintedTable(table["source"], table["caption"], heads, rows)

    @cached_property
    def figures(self) -> list[Exhibit]:
        """Figures of ours that have been drawn."""
        return self._exhibits("figures", ".png")

    @property
    def own_tables(self) -> list[Exhibit]:
        """Tables of ours, for people to read."""
        return self._exhibits("tables", ".md")

    @property
    def notebook(self) -> Path | None:
        """The executed notebook, if there is one."""
        path = self._results / "notebooks" / f"{self.name}.ipynb"
        return path if path.is_file() else None

    @cached_property
    def jobs(self) -> list[Job]:
        """Cells that were run."""
        found = []
        for path, settings in self.plan.get("cells", {}).items():
            cell = Cell.read(settings)
            file = self._results / "histories" / f"{path}.h5"
            if not file.is_file():
                continue
            with h5py.File(file) as history:
                about = json.loads(history.attrs["about"])
            took = measured(self._results / "benchmarks" / f"{path}.tsv")
            label = self.plan["problems"][cell.problem].get("label") or cell.problem
            status, params = about["problem"]["status"], about["params"]
            where = (path, cell.experiment, cell.problem, str(label))
            found.append(Job(*where, status, cell.repeats, params, about, took))
        return found

    @property
    def records(self) -> list[tuple[str, list[str], int]]:
        """What restored histories say of their data, with their commits and their number."""
        found: dict[str, list[str]] = {}
        for job in self.jobs:
            if "restored" in job.about:
                note = job.about["problem"]["note"] or "drawn under that commit."
                found.setdefault(note, []).append(job.about.get("commit", "unknown"))
        return [(note, sorted(set(every)), len(every)) for note, every in found.items()]

    @property
    def data(self) -> list[dict[str, Any]]:
        """Facts on the data of the problems that were run."""
        known = {job.about["problem"]["name"]: job.about["problem"] for job in self.jobs}
        return [known[name] for name in sorted(known)]

    @cached_property
    def items(self) -> dict[str, Mapping[str, Any]]:
        """What the claims file says of each item, by its id."""
        items = (*self.claimed["items"], *self.claimed["software"])
        return {item["id"]: item for item in items}

    def judging(self, verdict: Verdict) -> Judged | None:
        """Return the rows of the first cell of the first reading that was run; None without any."""
        pairs = zip(self.items[verdict.id]["readings"], verdict.readings, strict=False)
        ran = next((given for given, reading in pairs if reading.state), None)
        if ran is None:
            return None
        select = next(iter(ran["cells"].values()))["select"]
        rows = measurements.matching(self._rows_of(select["table"]), select["where"])
        return judged_by(select, rows) if rows else None

    def _rows_of(self, table: str) -> list[Row]:
        """Return the rows of a table, which is read once; none where it was not made."""
        if table not in self._rows:
            file = self._results / "tables" / self.name / f"{table}.tsv"
            self._rows[table] = tables.read(file) if file.is_file() else []
        return self._rows[table]

    def changes(self, verdict: Verdict) -> list[Mapping[str, Any]]:
        """Return what all readings of an item fill in or replace, with grounds and passages."""
        readings = self.items[verdict.id]["readings"]
        of_readings = [(*one["fills_in"], *one["replaces"]) for one in readings]
        names = [name for mine in of_readings for name in mine]
        return [self.claimed["changes"][name] for name in dict.fromkeys(names)]

    def _exhibits(self, kind: str, ending: str) -> list[Exhibit]:
        named = self.plan.get(kind, {})
        found = [
            Exhibit(name, caption, self._results / kind / self.name / f"{name}{ending}")
            for name, caption in named.items()
        ]
        there = [one for one in found if one.file.is_file()]
        for one in there:
            checksums.require(one.file, kind.removesuffix("s"))
        return there


def slug(text: str) -> str:
    """Return a text as part of a name in HTML."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def papers(results: Path, root: Path) -> list[Paper]:
    """Return all papers that have verdicts in a folder of results, then studies that have none."""
    names = [file.stem for file in verdict_pages.files_in(results / "verdicts")]
    plans = [file.stem for file in sorted((results / "plans").glob("*.json"))]
    found = [Paper(results, name, root) for name in dict.fromkeys([*names, *plans])]
    for paper in found:
        if paper.verdicts and not paper.claims_file.is_file():
            print(f"{paper.name} has no pages: {paper.claims_file} is gone", file=sys.stderr)
    found = [paper for paper in found if not paper.verdicts or paper.claims_file.is_file()]
    return [paper for paper in found if paper.judged or not paper.plan.get("judged", True)]

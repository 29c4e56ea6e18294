"""Collect the contents of the site's pages from results and claims files."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import h5py

from fedcore.experiments.cell import Cell
from fedcore.files import checksums
from fedcore.reports import plotting, tables
from fedcore.reports.tables import Row
from fedcore.repro.config import claims as claims_files
from fedcore.repro.config import papers as paper_files
from fedcore.repro.plan.job_costs import measured
from fedcore.repro.site.left_out import by_reason
from fedcore.repro.tables.rows import gathered
from fedcore.repro.verdicts import answers, measurements, verdict_pages
from fedcore.repro.verdicts.verdicts import Verdict
from fedcore.words import counted

LONG = 40  # most rows of a table that a page shows
View = dict[str, Any]  # what a template shows of one thing, by the names that it uses


def _numbers(rows: Sequence[Row], besides: set[str]) -> list[str]:
    """Return the columns whose numbers differ between rows, except the columns in `besides`.

    For a single row, all columns with numbers, except those in `besides`, are returned.
    """
    names = [name for name in rows[0] if name not in besides]
    found = {name: {row[name] for row in rows if isinstance(row[name], float)} for name in names}
    return [name for name in names if len(found[name]) > 1 or (found[name] and len(rows) == 1)]


def judged_by(select: Mapping[str, Any], rows: Sequence[Row]) -> View:
    """Return, for a page, the table rows that decide the verdict on a claim.

    In the result, ``rows`` contains the first `LONG` rows as text, and ``all_rows`` is the number
    of all rows. The entry ``experiments`` is the set of experiments that the rows name.
    """
    named = [*select["where"], *select["points"], "repeat"]
    column = select["column"]
    columns = [name for name in dict.fromkeys(named) if name in rows[0] and name != column]
    if all(isinstance(row[column], bool | None) for row in rows):  # what it is read off
        columns += _numbers(rows, {*columns, column})
    columns.append(column)
    return {
        "table": select["table"],
        "columns": columns,
        "rows": [[tables.show(row[name]) for name in columns] for row in rows[:LONG]],
        "all_rows": len(rows),
        "experiments": {str(row["experiment"]) for row in rows if row.get("experiment")},
    }


class Paper:
    """The contents of one paper's pages.

    Attributes
    ----------
    judged : bool
        Whether the results contain verdicts; results of a user's own study contain none.
    verdicts, printed_items, checks : list of Verdict
        All verdicts, the verdicts on items that the paper prints, and the verdicts on checks of
        this software.
    plan : dict
        The plan of the run; empty if the results contain no plan.
    plan_file : path
        File of the plan, which may be missing.
    title, citation : str
        Title and citation in the plan. Without a plan, the title is the paper's name.
    missing : dict of str to list of str
        For each reason, the names of the problems and experiments that were not run.
    question : str
        The paper's question, which the verdicts on its headline claims answer.
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
        self._items = claims_files.by_id(self.claimed)
        self.question = self.claimed.get("question", "")
        kept = self.claims_file.with_name("verdicts.tsv")
        #: Verdicts of this run or, for a quick run, the kept verdicts on the same items.
        self.told = self.verdicts
        if self.quick:
            known = {verdict.id for verdict in self.verdicts}
            read = verdict_pages.read(kept) if kept.is_file() else []
            self.told = [verdict for verdict in read if verdict.id in known]
        self._notes = root / "kept" / "run.json"
        self._rows: dict[str, list[Row]] = {}

    @property
    def command_options(self) -> str:
        """Snakemake options that choose the paper; empty if its folder is in ``papers/``."""
        entry = self._entry
        return "" if entry == self.name else f" --config papers={shlex.quote(f'[{entry}]')}"

    @cached_property
    def run(self) -> View:
        """Date, commit and description of the run that gave the verdicts on the pages."""
        missing, cost, date = sum(map(len, self.missing.values())), [], ""
        if not self.quick:
            commits = sorted({job["about"].get("commit", "unknown") for job in self.jobs})
            hours = sum(job["took"].cpu for job in self.jobs if job["took"]) / 3600
            cost = [counted(len(self.jobs), "history", "histories"), f"{hours:.2g} h of CPU"]
            commit = ", ".join(commits) or "unknown"
        else:
            notes = json.loads(self._notes.read_text("utf-8")) if self._notes.is_file() else {}
            known = notes.get(self.name, {"date": "", "commit": "unknown", "missing": ()})
            date, commit, missing = known["date"], known["commit"], len(known["missing"])
        left_out = f"without {counted(missing, 'part')} of the plan" if missing else ""
        lines = [*filter(None, [date, f"commit {commit}", *cost, left_out])]
        return {"date": date, "commit": commit, "lines": lines}

    @property
    def picture(self) -> View | None:
        """The figure of the first headline claim that has a figure, or None if there is none."""
        named = [self.figure(v) for v in answers.headlines(self.told)]
        return next(filter(None, named), None)

    def figure(self, verdict: Verdict) -> View | None:
        """Return the figure that a verdict's claim names, or None if this figure was not drawn."""
        return next((one for one in self.figures if one["name"] == verdict.figure), None)

    @cached_property
    def of_rows(self) -> dict[tuple[str, str], list[Verdict]]:
        """Verdicts on rows of printed tables; each key is a pair of table name and row name."""
        words = {verdict.id: verdict for verdict in self.told}
        judged = [item for item in self.claimed["items"] if "row" in item and item["id"] in words]
        return gathered((tuple(item["row"]), words[item["id"]]) for item in judged)

    @cached_property
    def _pictures(self) -> list[View]:
        return self._exhibits("figures", ".png")

    @cached_property
    def figures(self) -> list[View]:
        """Figures that this run has drawn, without the empty ones."""
        return [one for one in self._pictures if not plotting.shows_nothing(one["file"])]

    @property
    def empty_figures(self) -> list[str]:
        """Captions of the figures that are empty because none of their cells was run."""
        return [str(one["caption"]) for one in self._pictures if one not in self.figures]

    @cached_property
    def own_tables(self) -> list[View]:
        """Tables of this run in Markdown; ``below`` is the text of a table without its caption."""
        found = self._exhibits("tables", ".md")
        for one in found:
            text = one["file"].read_text(encoding="utf-8")
            one["below"] = text.removeprefix(f"{tables.escaped(one['caption'])}\n\n")
        return found

    @property
    def notebook(self) -> Path | None:
        """Path of the executed notebook, or None if there is no such file."""
        path = self._results / "notebooks" / f"{self.name}.ipynb"
        return path if path.is_file() else None

    @cached_property
    def jobs(self) -> list[View]:
        """Cells that were run, each with its history's metadata ``about`` and its job's costs."""
        found = []
        for path, settings in self.plan.get("cells", {}).items():
            cell = Cell.read(settings)
            file = self._results / "histories" / f"{path}.h5"
            if file.is_file():
                with h5py.File(file) as history:
                    about = json.loads(history.attrs["about"])
                label = self.plan["problems"][cell.problem].get("label") or cell.problem
                took = measured(self._results / "benchmarks" / f"{path}.tsv")
                job = {"path": path, "label": str(label), "repeats": cell.repeats}
                found.append(job | {"about": about, "took": took})
        return found

    @property
    def records(self) -> list[tuple[str, list[str], int]]:
        """Notes on the data of restored histories, each with these histories' commits and number.

        A restored history was copied into the results from an earlier run.
        """
        restored = [job["about"] for job in self.jobs if "restored" in job["about"]]
        drawn = "drawn under that commit."
        found = gathered(
            (about["problem"]["note"] or drawn, about.get("commit", "unknown"))
            for about in restored
        )
        return [(note, sorted(set(every)), len(every)) for note, every in found.items()]

    @property
    def data(self) -> list[View]:
        """Facts about the data of each problem that was run."""
        known = {job["about"]["problem"]["name"]: job["about"]["problem"] for job in self.jobs}
        return [known[name] for name in sorted(known)]

    def judging(self, verdict: Verdict) -> View | None:
        """Return, for a page, the table rows that decide a verdict; None without such rows.

        The rows are selected by the first tested value (cell) of the first reading (way to run the
        item) that has a result.
        """
        pairs = zip(self._items[verdict.id]["readings"], verdict.readings, strict=False)
        ran = next((given for given, reading in pairs if reading.state), None)
        if ran is None:
            return None
        select = next(iter(ran["cells"].values()))["select"]
        if select["table"] not in self._rows:
            file = self._results / "tables" / self.name / f"{select['table']}.tsv"
            self._rows[select["table"]] = tables.read(file) if file.is_file() else []
        rows = measurements.matching(self._rows[select["table"]], select["where"])
        return judged_by(select, rows) if rows else None

    def changes(self, verdict: Verdict) -> list[Mapping[str, Any]]:
        """Return all changes that readings make to the printed claim, with the reason for each."""
        readings = self._items[verdict.id]["readings"]
        of_readings = [(*one["fills_in"], *one["replaces"]) for one in readings]
        names = [name for mine in of_readings for name in mine]
        return [self.claimed["changes"][name] for name in dict.fromkeys(names)]

    def _exhibits(self, kind: str, ending: str) -> list[View]:
        """Return the name, caption and file of each planned figure or table whose file exists."""
        found = []
        for name, caption in self.plan.get(kind, {}).items():
            file = self._results / kind / self.name / f"{name}{ending}"
            if file.is_file():
                checksums.require(file, kind.removesuffix("s"))
                found.append({"name": name, "caption": caption, "file": file})
        return found


def slug(text: str) -> str:
    """Return a text as lower-case letters, digits and hyphens, for use in HTML names."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def names(results: Path) -> list[str]:
    """Return the names of papers with verdicts in `results`, then of papers with only a plan."""
    judged = [file.stem for file in verdict_pages.files_in(results / "verdicts")]
    planned = [file.stem for file in sorted((results / "plans").glob("*.json"))]
    return [*dict.fromkeys([*judged, *planned])]

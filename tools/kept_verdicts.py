"""Keeps the verdicts of the last runs in the folders of papers, and notes on these runs.

`collect` copies the tables of verdicts from ``results/``, and writes data, versions, machine and
times of the runs to ``kept/run.json``. Earlier verdicts stay if the last run left out their paper
or their item (a printed result of the paper). A paper of many hours can therefore be run in parts.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import h5py

from fedcore.errors import DataError
from fedcore.experiments.provenance import commit
from fedcore.reports import tables
from fedcore.repro.config.claims import by_id
from fedcore.repro.plan.job_costs import measured
from fedcore.repro.plan.machine import describe_machine
from fedcore.repro.tables.results import COMMITS
from fedcore.repro.verdicts import records, verdict_pages
from fedcore.repro.verdicts.verdicts import NOT_RUN, Verdict, retold
from fedcore.words import counted, few

ROOT = Path(__file__).parents[1]
NOTES = "kept/run.json"
CHANGED = "the test has changed since this verdict was found"
Run = dict[str, Any]


def collect(
    results: Path,
    root: Path,
    checked: Mapping[str, Mapping[str, str]],
    codes: Mapping[str, str],
) -> None:
    """Copy the tables of verdicts of a run, and write notes on the run.

    Parameters
    ----------
    results, root : path
        Folder of the run's results, and the checkout that keeps the verdicts.
    checked : mapping of str to mapping of str to str
        Fingerprints of the items' tests, by paper and id. Nothing is kept of papers that are not in
        `checked`.
    codes : mapping of str to str
        Fingerprint of the present code of each cell (a planned run of a method), by the cell's
        path.

    Raises
    ------
    DataError
        If the run has no verdicts, or if a file of the run is missing or damaged.
    """
    files = [f for f in verdict_pages.files_in(results / "verdicts") if f.stem in checked]
    if not files:
        raise DataError(f"there are no verdicts in {results}: run `make reproduce` first")
    made = {"machine": describe_machine(), "judged by": commit(ROOT)}
    before, earlier_runs = read(root)
    run = {paper: notes for paper, notes in earlier_runs.items() if paper in checked}
    tables_of: dict[str, list[Verdict]] = {}
    for file in files:  # all are read, and a damaged one is refused, before anything is written
        paper, notes = file.stem, noted(results, file.stem, codes) | made
        last = earlier_runs.get(paper, {})
        rules = last.get("rules", {})
        could = set(checked[paper]) if notes["missing"] else set()
        alike = {i for i, rule in checked[paper].items() if rules.get(i, rule) == rule}
        found, stayed = with_earlier(verdict_pages.read(file), before.get(paper, []), could, alike)
        tables_of[paper] = found
        run[paper] = joined(notes, runs_of(stayed, last))
        kept_rules = {i: rule for i, rule in rules.items() if i in stayed}  # `retell` marks others
        run[paper]["rules"] = dict(sorted((checked[paper] | kept_rules).items()))
    for paper, verdicts in tables_of.items():
        write(root, paper, verdicts)
    for old in root.glob("papers/*/verdicts.tsv"):
        if old.parent.name not in run:
            old.unlink()
    text = json.dumps(dict(sorted(run.items())), indent=1, ensure_ascii=False)
    (root / NOTES).parent.mkdir(exist_ok=True)
    (root / NOTES).write_text(text + "\n", encoding="utf-8")


def retell(root: Path, papers: Mapping[str, Any]) -> None:
    """Update kept verdicts to the texts of today's claims files; mark those whose test has changed.

    Parameters
    ----------
    root : path
        The checkout that keeps the verdicts.
    papers : mapping
        Contents of the claims files, by paper.
    """
    verdicts, run = read(root)
    for paper, kept in verdicts.items():
        claims = papers[paper]
        today, made = records.fingerprints(claims), run[paper].get("rules", {})
        items = {
            name: item for name, item in by_id(claims).items() if today.get(name) == made.get(name)
        }
        found = [
            retold(v, items[v.id], claims) if v.id in items else replace(v, remark=CHANGED)
            for v in kept
        ]
        write(root, paper, found)


def with_earlier(
    verdicts: Sequence[Verdict],
    before: Sequence[Verdict],
    could: Collection[str],
    alike: Collection[str],
) -> tuple[list[Verdict], list[str]]:
    """Return a run's verdicts, some replaced by earlier ones, and the ids of those replaced.

    An earlier verdict replaces a "not run" if the earlier one is no "not run", or rests on more
    runs. An earlier verdict replaces another verdict if the item's test is the same, and the
    earlier one rests on more runs of the same readings (ways to run an item).

    Parameters
    ----------
    verdicts, before : sequence of Verdict
        Verdicts of the run, and verdicts that were kept earlier.
    could : collection of str
        Ids of the items whose earlier verdicts may be used.
    alike : collection of str
        Ids of the items that have the same test as before.
    """
    judged = {(v.id, v.printed): v for v in before if v.id in could}

    def chosen(v: Verdict) -> Verdict:
        earlier = judged.get((v.id, v.printed), v)
        if v.word != NOT_RUN:
            same = [r.how for r in v.readings] == [r.how for r in earlier.readings]
            fewer = v.id in alike and same and _runs(v) < _runs(earlier)
            return earlier if fewer else v
        more = earlier.word != NOT_RUN or _runs(earlier) > _runs(v)
        return earlier if more else v

    found = [chosen(v) for v in verdicts]
    return found, [v.id for v, kept in zip(verdicts, found, strict=True) if kept is not v]


def _runs(verdict: Verdict) -> int:
    return sum(reading.runs for reading in verdict.readings)


def runs_of(items: Collection[str], before: Run) -> list[Run]:
    """Return the notes on the runs that judged `items`, from the earlier notes on the paper."""
    if not items:
        return []
    kept = ("date", "commit", "judged by", "machine", "versions", "times", "data")
    last = {name: before[name] for name in kept}
    older = [part | {"items": [i for i in part["items"] if i in items]}
             for part in before.get("earlier", [])]  # fmt: skip
    of_older = {item for part in older for item in part["items"]}
    last["items"] = [item for item in items if item not in of_older]
    return [part for part in (last, *older) if part["items"]]


def joined(notes: Run, parts: Sequence[Run]) -> Run:
    """Return the notes on a run, together with the earlier runs whose verdicts are kept.

    An earlier run with the same commit, versions and machine is merged with the run.
    """
    run, others = dict(notes), []
    for part in parts:
        if any(part[name] != run[name] for name in ("commit", "versions", "machine")):
            others.append(part)
            continue
        run["data"] = part["data"] | run["data"]
        run["times"] = part["times"] | run["times"]
        if part["judged by"] != run["judged by"]:
            run["judged by"] = f"{part['judged by']}, {run['judged by']}"
    made = run["data"].keys() | run["times"].keys()
    run["missing"] = {name: why for name, why in run["missing"].items() if name not in made}
    return run | {"earlier": others}


def run_that_judged(item: str, notes: Run) -> Run:
    """Return the notes on the run that gave the kept verdict on an item: the last or an earlier."""
    earlier: list[Run] = notes.get("earlier", [])
    return next((part for part in earlier if item in part["items"]), notes)


def data_of(notes: Run) -> Run:
    """Return the data of the last run, and of the earlier runs whose verdicts are kept."""
    found: Run = {}
    for part in reversed([notes, *notes.get("earlier", [])]):
        found |= part.get("data", {})  # parts of before 24 November 2026 have none
    return dict(sorted(found.items()))


def noted(results: Path, paper: str, codes: Mapping[str, str]) -> Run:
    """Return notes on a paper's run, from its plan, its histories and the times of its jobs."""
    path = results / "plans" / f"{paper}.json"
    if not path.is_file():
        raise DataError(f"there is no {path}: run `make reproduce` first")
    plan = json.loads(path.read_text(encoding="utf-8"))
    data: dict[str, Run] = {}
    versions: dict[str, set[str]] = {}
    times: dict[str, Run] = {}
    devices: Counter[str] = Counter()
    commits: set[str] = set()
    for cell, settings in plan["cells"].items():
        with h5py.File(results / "histories" / f"{cell}.h5") as file:
            about = json.loads(file.attrs["about"])
        problem = about["problem"]
        sizes = {key: problem.get(key) for key in ("n_samples", "n_features", "n_clients")}
        data[settings["problem"]] = {"status": problem["status"], **sizes, "note": problem["note"]}
        for name, version in about["versions"].items():
            versions.setdefault(name, set()).add(version)
        devices[about.get("device", "a core")] += 1
        commits.add(about["commit"])
        timed = measured(results / "benchmarks" / f"{cell}.tsv")
        cpu, wall, memory = timed or (0.0, 0.0, 0.0)
        time = times.setdefault(
            settings["experiment"],
            {
                "cells": 0,
                "by other code": 0,
                "untimed": 0,
                "CPU seconds": 0.0,
                "seconds": 0.0,
                "MB": 0,
            },
        )
        time["cells"] += 1
        time["by other code"] += about["code"] != codes.get(cell)  # restored, see README
        time["untimed"] += timed is None
        time["CPU seconds"] = round(time["CPU seconds"] + cpu, 1)
        time["seconds"] = round(time["seconds"] + wall, 1)
        time["MB"] = max(time["MB"], math.ceil(memory))
    if set(devices) - {"a core"}:
        versions["device"] = {f"{name} ({counted(n, 'cell')})" for name, n in devices.items()}
    ended = (results / "verdicts" / f"{paper}.tsv").stat().st_mtime
    return {
        "title": plan["title"],
        "citation": plan["citation"],
        "date": datetime.fromtimestamp(ended, UTC).date().isoformat(),
        "commit": few(sorted(commits), COMMITS, "commit", ", "),
        "data": dict(sorted(data.items())),
        "missing": plan["missing"],
        "versions": {name: ", ".join(sorted(versions[name])) for name in sorted(versions)},
        "times": times,
    }


def table(root: Path, paper: str) -> Path:
    """Return the path of the file in which a checkout keeps the verdicts on a paper."""
    return root / "papers" / paper / "verdicts.tsv"


def write(root: Path, paper: str, verdicts: Sequence[Verdict]) -> None:
    """Write the verdicts on a paper to the file that `table` names."""
    lines = tables.text(verdict_pages.rows(verdicts), paper)
    table(root, paper).parent.mkdir(parents=True, exist_ok=True)
    table(root, paper).write_text(lines, encoding="utf-8", newline="\n")


def read_notes(root: Path) -> Run:
    """Return the notes that `collect` has written, by paper."""
    notes = root / NOTES
    found: Run = json.loads(notes.read_text(encoding="utf-8")) if notes.is_file() else {}
    return found


def read(root: Path) -> tuple[dict[str, list[Verdict]], Run]:
    """Return the kept verdicts by paper, and the notes that `collect` has written."""
    run = read_notes(root)
    return {paper: verdict_pages.read(table(root, paper)) for paper in run}, run

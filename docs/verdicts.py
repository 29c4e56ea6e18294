"""Writes the verdicts' pages from the last full run; `make verdicts` runs it.

`collect` copies the tables of verdicts from ``results/`` to ``docs/verdicts/`` and writes beside
them, in ``run.json``, what else the pages say: data, versions, machine and times. All pages, and
the part of README between two comments, are functions of these kept files; a test remakes them.
"""

from __future__ import annotations

import json
import math
import platform
import re
import shutil
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from fedcore.config import claims
from fedcore.errors import DataError
from fedcore.reports import tables, verdict_pages
from fedcore.reports.verdicts import SOFTWARE, VERDICTS, Verdict

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "docs" / "verdicts"
START = "<!-- `make verdicts` writes what follows, to the next comment -->"
END = "<!-- end of what `make verdicts` writes -->"
WRITTEN = "`make verdicts` writes this page from the last full run; a test fails when it is stale."
NONE = "No verdicts are kept: run `make reproduce`, then `make verdicts`.\n"
Run = dict[str, Any]


def collect(results: Path, kept: Path) -> None:
    """Copy the tables of verdicts of a run, and note what else the pages say.

    Raises
    ------
    DataError
        When the run has no verdicts, or a file of it is missing or damaged.
    """
    files = verdict_pages.files_in(results / "verdicts")
    if not files:
        raise DataError(f"there are no verdicts in {results}: run `make reproduce` first")
    for file in files:
        verdict_pages.read(file)  # refuses a damaged one before anything is written
    run = {"machine": machine(), "papers": {file.stem: noted(results, file.stem) for file in files}}
    kept.mkdir(exist_ok=True)
    for old in kept.glob("*.tsv"):
        old.unlink()
    for file in files:
        shutil.copyfile(file, kept / file.name)
    text = json.dumps(run, indent=1, ensure_ascii=False)
    (kept / "run.json").write_text(text + "\n", encoding="utf-8")


def machine() -> dict[str, str]:
    """Return CPU and BLAS of this machine, and its system."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        named = re.search(r"^model name\s*: (.*)$", info.read_text(encoding="utf-8"), re.MULTILINE)
        cpu = " ".join(named[1].split()) if named else cpu
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    name = f"{blas['name']} {blas['version']}"
    try:
        import threadpoolctl
    except ImportError:
        kernels: set[str] = set()
    else:
        kernels = {str(found.get("architecture")) for found in threadpoolctl.threadpool_info()}
    kernels -= {"None"}
    name += f", kernel {', '.join(sorted(kernels))}" if kernels else ""
    return {"CPU": cpu, "BLAS": name, "system": f"{platform.system()} {platform.machine()}"}


def noted(results: Path, paper: str) -> Run:
    """Return title, data, versions and times of one paper from its plan, histories, benchmarks."""
    path = results / "plans" / f"{paper}.json"
    if not path.is_file():
        raise DataError(f"there is no {path}: run `make reproduce` first")
    plan = json.loads(path.read_text(encoding="utf-8"))
    data: dict[str, Run] = {}
    versions: dict[str, set[str]] = {}
    times: dict[str, Run] = {}
    for cell, settings in plan["cells"].items():
        with h5py.File(results / "histories" / f"{cell}.h5") as file:
            about = json.loads(file.attrs["about"])
        problem = about["problem"]
        sizes = {key: problem.get(key) for key in ("n_samples", "n_features", "n_clients")}
        data[settings["problem"]] = {"status": problem["status"], **sizes, "note": problem["note"]}
        for name, version in about["versions"].items():
            versions.setdefault(name, set()).add(version)
        seconds, memory = measured(results / "benchmarks" / f"{cell}.tsv")
        time = times.setdefault(settings["experiment"], {"cells": 0, "seconds": 0.0, "MB": 0})
        time["cells"] += 1
        time["seconds"] = round(time["seconds"] + seconds, 1)
        time["MB"] = max(time["MB"], math.ceil(memory))
    return {
        "title": plan["title"],
        "citation": plan["citation"],
        "data": dict(sorted(data.items())),
        "missing": plan["missing"],
        "versions": {name: ", ".join(sorted(versions[name])) for name in sorted(versions)},
        "times": times,
    }


def measured(path: Path) -> tuple[float, float]:
    """Return seconds and largest memory in MB of a job, 0 where they are not known."""
    if not path.is_file():
        return 0.0, 0.0
    head, line = path.read_text(encoding="utf-8").splitlines()[:2]
    values = dict(zip(head.split("\t"), line.split("\t"), strict=True))
    found = [tables.parse(values.get(name, "")) for name in ("s", "max_rss")]
    seconds, memory = (float(x) if isinstance(x, int | float) else 0.0 for x in found)
    return seconds, memory


def read(kept: Path) -> tuple[dict[str, list[Verdict]], Run]:
    """Return the kept verdicts by paper, and what `collect` noted."""
    notes = kept / "run.json"
    if not notes.is_file():
        return {}, {"machine": {}, "papers": {}}
    run = json.loads(notes.read_text(encoding="utf-8"))
    return {paper: verdict_pages.read(kept / f"{paper}.tsv") for paper in run["papers"]}, run


def pages(kept: Path) -> dict[str, str]:
    """Return the text of every page, by its name below docs/."""
    verdicts, run = read(kept)
    found = {"verdicts.md": index(verdicts, run)}
    for paper, items in verdicts.items():
        found[f"verdicts/{paper}.md"] = page(paper, items, run)
    return found


def index(verdicts: dict[str, list[Verdict]], run: Run) -> str:
    """Return docs/verdicts.md: the counts, what the verdicts mean, and a link per paper."""
    found = [verdict for items in verdicts.values() for verdict in items]
    parts = ["# Verdicts\n", f"{WRITTEN}\n"]
    if not found:
        return "\n".join([*parts, NONE])
    linked = {paper: f"[{paper}](verdicts/{paper}.md)" for paper in verdicts}
    parts += [with_labels(tables.markdown(verdict_pages.counts(found)), linked), meanings(found)]
    checks = Counter(v.verdict for v in found if v.section == SOFTWARE)
    if checks:
        words = ", ".join(f"{count} {name}" for name, count in sorted(checks.items()))
        parts.append(f"Checks of this software, which say nothing of the papers: {words}.\n")
    parts += ["Machine:\n", listed(run["machine"])]
    parts.append(
        "`fedcore verdicts --show ID` prints everything about one item, such as what turns its\n"
        "outcome; `fedcore verdicts --strict docs/verdicts` compares a new run with these tables.\n"
    )
    return "\n".join(parts)


def page(paper: str, verdicts: list[Verdict], run: Run) -> str:
    """Return the certificate of one paper."""
    notes = run["papers"][paper]
    printed = verdict_pages.printed_items(verdicts)
    kinds = [_checked(kind, printed) for kind in dict.fromkeys(v.kind for v in printed)]
    left_out = [v for v in printed if v.verdict in ("not run", "not comparable")]
    parts = [
        f"# `{paper}`: {notes['title']}\n",
        f"{notes['citation']}. [All papers](../verdicts.md), [table]({paper}.tsv).\n{WRITTEN}\n",
        "## What was checked\n",
        tables.markdown(kinds) if kinds else "The paper's items are not listed yet.\n",
        "## What was left out, and why\n",
        counted(left_out, verdict="verdict", reason="why") if left_out else "Nothing.\n",
        "## How it was run\n",
        counted([v for v in printed if v.protocol], protocol="protocol"),
        "## Data\n",
        tables.markdown([{"problem": name, **data} for name, data in notes["data"].items()]),
    ]
    parts += [f"- {name}: {why}\n" for name, why in notes["missing"].items()]
    times = [{"experiment": name, **time} for name, time in notes["times"].items()]
    everything = {"experiment": "total", "cells": sum(t["cells"] for t in times)}
    everything["seconds"] = sum(t["seconds"] for t in times)
    everything["MB"] = max((t["MB"] for t in times), default=0)
    parts += [
        "## Environment\n",
        "Versions are those that the histories hold; machine and BLAS, those of the machine that\n"
        "made the pages.\n",
        listed(notes["versions"] | run["machine"]),
        "## Times\n",
        "Seconds of all cells of an experiment together, and the largest memory of one.\n",
        tables.markdown([*times, everything]),
        "## Items\n",
        verdict_pages.page(verdicts),
    ]
    return "\n".join(parts)


def _checked(kind: str, printed: list[Verdict]) -> tables.Row:
    mine = [v for v in printed if v.kind == kind]
    there = verdict_pages.occurring(printed)
    found = Counter(v.verdict for v in mine)
    return {"kind": kind, "printed items": len(mine), **{name: found[name] for name in there}}


def counted(verdicts: list[Verdict], **columns: str) -> str:
    """Return a table of the values of fields, each with the number of its verdicts."""
    found = Counter(tuple(getattr(v, field) for field in columns) for v in verdicts)
    rows = [
        {**dict(zip(columns.values(), values, strict=True)), "items": count}
        for values, count in found.most_common()
    ]
    return tables.markdown(rows)


def listed(values: dict[str, str]) -> str:
    """Return names and values as a list in Markdown."""
    return "".join(f"- {name}: {tables.escaped(value)}\n" for name, value in values.items())


def meanings(verdicts: list[Verdict]) -> str:
    """Return what the verdicts that occur mean, as lines of prose."""
    there = verdict_pages.occurring(verdicts)
    words = [f"*{name.capitalize()}*: {VERDICTS[name]}" for name in there]
    return textwrap.fill(" ".join(words), 100, break_on_hyphens=False) + "\n"


def with_labels(table: str, labels: dict[str, str]) -> str:
    """Return a table with other names of the papers in its first column."""
    for paper, label in labels.items():
        table = table.replace(f"\n| {paper} |", f"\n| {label} |")
    return table


def section(kept: Path) -> str:
    """Return what README says between `START` and `END`."""
    verdicts, run = read(kept)
    found = [verdict for items in verdicts.values() for verdict in items]
    if not found:
        return f"{NONE}\n{inventory()}"
    labels = {
        paper: f"[`{paper}`](docs/verdicts/{paper}.md): {run['papers'][paper]['citation']}"
        for paper in verdicts
    }
    table = with_labels(tables.markdown(verdict_pages.counts(found)), labels)
    return f"{table}\n{meanings(found)}"


def inventory() -> str:
    """Return a table that counts the items of every claims file, and how many have a check."""
    rows: list[tables.Row] = []
    for path in sorted((ROOT / "config" / "claims").glob("*.yaml")):
        read = claims.read(path)
        reasons = Counter(i.get("unchecked", {}).get("verdict", "") for i in read["claims"])
        rows.append(
            {
                "paper": f"`{path.stem}`",
                "printed items": len(read["claims"]),
                "with a check": reasons[""],
                "not comparable": reasons["not comparable"],
                "not run": reasons["not run"],
                "departures": len(read["departures"]),
            }
        )
    total = {name: sum(int(str(row[name])) for row in rows) for name in list(rows[0])[1:]}
    return tables.markdown([*rows, {"paper": "total", **total}])


def in_readme(text: str, between: str) -> str:
    """Return README with `between` in place of what stands between the two comments."""
    if text.count(START) != 1 or text.count(END) != 1:
        raise DataError(f"README.md needs the lines '{START}' and '{END}' once each")
    head, rest = text.split(START)
    return f"{head}{START}\n\n{between}\n{END}{rest.split(END)[1]}"


def main() -> None:
    """Collect from results/ and write all pages."""
    collect(ROOT / "results", KEPT)
    made = pages(KEPT)
    for old in KEPT.glob("*.md"):
        old.unlink()
    for name, text in made.items():
        (ROOT / "docs" / name).write_text(text, encoding="utf-8", newline="\n")
    readme = ROOT / "README.md"
    changed = in_readme(readme.read_text(encoding="utf-8"), section(KEPT))
    readme.write_text(changed, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    try:
        main()
    except DataError as error:
        sys.exit(f"Error: {error}")

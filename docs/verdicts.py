"""Writes the verdicts' pages from the last full run; `make verdicts` runs it.

`kept_verdicts` keeps the run's verdicts in docs/verdicts/. All pages, and the parts of README and
of docs/privacy.md between two comments, are functions of these kept files and of ``findings.yaml``,
which says what README tells of them; a test remakes them.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from kept_verdicts import Run, collect, data_of, read, read_notes, run_that_judged

from fedcore.config import claims
from fedcore.config.strict_yaml import read_yaml
from fedcore.errors import DataError
from fedcore.experiments.plan import load_plan
from fedcore.reports import tables, verdict_pages
from fedcore.reports.left_out import by_reason
from fedcore.reports.rows import Rows
from fedcore.reports.verdicts import SOFTWARE, VERDICTS, Verdict
from fedcore.words import counted

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "docs" / "verdicts"
FINDINGS = ROOT / "docs" / "findings.yaml"
START = "<!-- `make verdicts` writes what follows, to the next comment -->"
END = "<!-- end of what `make verdicts` writes -->"
WRITTEN = "`make verdicts` writes this page from the last full run; a test fails when it is stale."
OTHER_CODE = (
    "The commit is that of tables and verdicts. Cells *by other code* were made before, and their\n"
    "histories put back (`make restore OTHER_CODE=1`); each names the code that made it.\n"
    "*Untimed* cells have no seconds here. Where both are empty, nobody has noted them.\n"
)
TIMES = (
    "Seconds of all timed cells of an experiment together, and the largest memory of one; what "
    "*by\nother code* and *untimed* mean stands [below the runs](../verdicts.md#the-runs).\n"
)
NONE = "No verdicts are kept: run `make reproduce`, then `make verdicts`.\n"


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
    parts += ["## The runs\n", tables.markdown(runs(run)), OTHER_CODE]
    parts.append(
        "`fedcore verdicts --show ID` prints everything about one item, such as what turns its\n"
        "outcome; `fedcore verdicts --strict docs/verdicts` compares a new run with these tables.\n"
    )
    return "\n".join(parts)


def page(paper: str, verdicts: list[Verdict], run: Run) -> str:
    """Return the certificate of one paper."""
    notes = run[paper]
    printed = verdict_pages.printed_items(verdicts)
    kinds = [_checked(kind, printed) for kind in dict.fromkeys(v.kind for v in printed)]
    left_out = [v for v in printed if v.verdict in ("not run", "not comparable")]
    parts = [
        f"# `{paper}`: {notes['title']}\n",
        f"{notes['citation']}. [All papers](../verdicts.md), [table]({paper}.tsv).\n{WRITTEN}\n",
        f"Run of {notes['date']}, commit {notes['commit']}.\n",
        "## What was checked\n",
        tables.markdown(kinds) if kinds else "The paper's items are not listed yet.\n",
        "## What was left out, and why\n",
        tallied(left_out, verdict="verdict", reason="why") if left_out else "Nothing.\n",
        "## How it was run\n",
        tallied([v for v in printed if v.protocol], protocol="protocol"),
        "## Data\n",
        tables.markdown([{"problem": name, **data} for name, data in data_of(notes).items()]),
    ]
    missing = by_reason(notes["missing"])
    parts += [f"- {', '.join(names)}: {why}\n" for why, names in missing.items()]
    times = [{"experiment": name, **total([time])} for name, time in notes["times"].items()]
    times.append({"experiment": "total", **total(notes["times"].values())})
    parts += [
        "## Environment\n",
        "Versions are those that the histories hold; machine and BLAS, those of the machine that\n"
        "made the pages.\n",
        listed(notes["versions"] | notes["machine"]),
        "## Times\n",
        TIMES,
        tables.markdown(times),
        *(earlier(part) for part in notes.get("earlier", [])),
        "## Items\n",
        verdict_pages.page(verdicts),
    ]
    return "\n".join(parts)


def earlier(part: Run) -> str:
    """Return what a page says of an earlier run whose verdicts on some items were kept."""
    items = ", ".join(f"`{item}`" for item in part["items"])
    cost = total(part["times"].values())
    said = (
        f"Run of {part['date']}, commit {part['commit']}, {counted(cost['cells'], 'cell')}, "
        f"{counted(cost['seconds'], 'second')}. The last run left "
        f"{'this item' if len(part['items']) == 1 else 'these items'} out: {items}."
    )
    said = textwrap.fill(said, 100, break_on_hyphens=False, break_long_words=False)
    return f"## Earlier run\n\n{said}\n\n" + listed(part["versions"] | part["machine"])


def total(times: Collection[Run]) -> tables.Row:
    """Return what experiments took together: cells, their seconds, and the largest memory in MB.

    How many cells were made by other code, and how many have no time, is None where a run has not
    noted it.
    """

    def counts(name: str) -> int | None:
        return sum(t[name] for t in times) if all(name in t for t in times) else None

    return {
        "cells": counts("cells"),
        "by other code": counts("by other code"),
        "untimed": counts("untimed"),
        "seconds": round(sum(time["seconds"] for time in times), 1),
        "MB": max((time["MB"] for time in times), default=0),
    }


def runs(run: Run) -> list[tables.Row]:
    """Return a row per run that judged: when and where it was, and how long its cells took."""
    rows: list[tables.Row] = []
    for paper, last in run.items():
        for part in [last, *last.get("earlier", [])]:
            items = counted(len(part.get("items", [])), "item")
            named = paper if part is last else f"{paper}, {items} of before"
            rows.append({"paper": named, "date": part["date"], "commit": part["commit"]})
            rows[-1] |= total(part["times"].values()) | part["machine"]
    return rows


def _checked(kind: str, printed: list[Verdict]) -> tables.Row:
    mine = [v for v in printed if v.kind == kind]
    there = verdict_pages.occurring(printed)
    found = Counter(v.verdict for v in mine)
    return {"kind": kind, "printed items": len(mine), **{name: found[name] for name in there}}


def tallied(verdicts: list[Verdict], **columns: str) -> str:
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


def section(kept: Path, findings: Path) -> str:
    """Return what README says between `START` and `END`.

    Parameters
    ----------
    kept, findings : path
        Folder of the kept verdicts, and file of what README tells of them.
    """
    verdicts, run = read(kept)
    found = [verdict for items in verdicts.values() for verdict in items]
    if not found:
        return f"{NONE}\n{table_of_inventory(inventory())}"
    labels = {
        paper: f"[`{paper}`](docs/verdicts/{paper}.md): {run[paper]['citation']}"
        for paper in verdicts
    }
    parts = [with_labels(tables.markdown(verdict_pages.counts(found)), labels), meanings(found)]
    told = table_of_findings(found, read_yaml(findings))
    gone = [
        f"No verdicts are kept of `{row['paper']}`: "
        f"{counted(row['printed items'], 'printed item')}, "
        f"{row['with a check']} with a check.\n"
        for row in inventory()
        if row["paper"] not in run
    ]
    return "\n".join([*parts, *([told] if told else []), *gone])


def table_of_findings(found: Iterable[Verdict], findings: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the findings as a table; those of papers without kept verdicts are left out.

    `findings` says something of items, by ``<paper>/<id>``. In what it ``says``,
    ``{<paper>/<id>}`` stands for what was measured of another item, so that no measured number is
    typed.

    Raises
    ------
    DataError
        When an item is not in the table of its paper, or nothing was measured of it.
    """
    known = {f"{v.paper}/{v.id}": v for v in found}
    kept = {v.paper for v in known.values()}

    def of(name: str) -> Verdict:
        if name not in known or not known[name].measured:
            raise DataError(f"findings.yaml: nothing is kept that was measured of {name}")
        return known[name]

    rows: list[tables.Row] = []
    for item, finding in findings.items():
        if item.split("/")[0] in kept:
            v = of(item)
            says = re.sub(r"\{([^{}]+/[^{}]+)\}", lambda m: of(m[1]).measured, finding["says"])
            printed = f"{v.quantity}: {v.printed} ({v.source})"
            rows.append(
                {"paper": f"`{v.paper}`", "printed": printed, "measured": v.measured,
                 "verdict": v.verdict, "finding": " ".join(says.split())}
            )  # fmt: skip
    return tables.markdown(rows) if rows else ""


def stale(found: Iterable[Verdict], findings: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return in words which findings were written for other verdicts than those that are kept."""
    now = {f"{v.paper}/{v.id}": v.verdict for v in found}
    return [
        f"{item}: {other} is '{now.get(other)}', and the finding was written for '{verdict}'"
        for item, finding in findings.items()
        for other, verdict in ({item: finding["verdict"]} | finding.get("rests_on", {})).items()
        if now.get(other) != verdict
    ]


def audits(kept: Path) -> str:
    """Return what docs/privacy.md says between `START` and `END`: the audits of the last runs."""
    verdicts, run = read(kept)
    rows: list[tables.Row] = [
        {"audit": v.quantity, "bound": v.measured, "with less noise": v.counterfactual,
         "outcome": v.verdict, "run of": run_that_judged(v.id, run[v.paper])["date"]}
        for items in verdicts.values()
        for v in items
        if v.section == SOFTWARE and v.id.startswith("audit-")
    ]  # fmt: skip
    return tables.markdown(rows) if rows else NONE


def every_paper() -> dict[str, Any]:
    """Return what is in config/claims, by paper."""
    files = sorted((ROOT / "config" / "claims").glob("*.yaml"))
    return {path.stem: claims.read(path) for path in files}


def checked(claimed: Mapping[str, Any]) -> dict[str, str]:
    """Return a fingerprint of how an item is checked, for every item that has a check."""
    items = (*claimed["claims"], *claimed["software"])
    how = ("select", "test", "departures", "readings", "spread", "counterfactual")
    return {
        item["id"]: hashlib.sha256(
            json.dumps([item.get(key) for key in how], sort_keys=True).encode()
        ).hexdigest()[:12]
        for item in items
        if "unchecked" not in item
    }


def inventory() -> Rows:
    """Return a row per claims file: how many items it has, and how many with a check."""
    rows: Rows = []
    for paper, claimed in every_paper().items():
        reasons = Counter(i.get("unchecked", {}).get("verdict", "") for i in claimed["claims"])
        rows.append(
            {
                "paper": paper,
                "printed items": len(claimed["claims"]),
                "with a check": reasons[""],
                "not comparable": reasons["not comparable"],
                "not run": reasons["not run"],
                "departures": len(claimed["departures"]),
            }
        )
    return rows


def table_of_inventory(rows: Rows) -> str:
    """Return the rows of `inventory` as a table, with a total."""
    sums = {name: sum(row[name] for row in rows) for name in list(rows[0])[1:]}
    named = [row | {"paper": f"`{row['paper']}`"} for row in rows]
    return tables.markdown([*named, {"paper": "total", **sums}])


def between_comments(text: str, between: str, page: str, start: str = START, end: str = END) -> str:
    """Return the text of a page with `between` in place of what stands between two comments."""
    if text.count(start) != 1 or text.count(end) != 1:
        raise DataError(f"{page} needs the lines '{start}' and '{end}' once each")
    head, rest = text.split(start)
    return f"{head}{start}\n\n{between}\n{end}{rest.split(end)[1]}"


def inserted(kept: Path) -> dict[str, str]:
    """Return the whole text of the pages that people write, with their written parts made anew."""
    parts = {"README.md": section(kept, FINDINGS), "docs/privacy.md": audits(kept)}
    return {
        page: between_comments((ROOT / page).read_text(encoding="utf-8"), part, page)
        for page, part in parts.items()
    }


def codes() -> dict[str, str]:
    """Return the fingerprint of the code that makes a cell, by its path; of all cells with data."""
    plan = load_plan(read_yaml(ROOT / "config" / "config.yaml"))
    return {path: cell.code for path, cell in plan.cells.items()}


def main() -> None:
    """Collect from results/ and write all pages."""
    rules = {name: checked(paper) for name, paper in every_paper().items()}
    collect(ROOT / "results", KEPT, rules, codes())
    made = pages(KEPT)
    for old in KEPT.glob("*.md"):
        old.unlink()
    for page, text in ({f"docs/{name}": made[name] for name in made} | inserted(KEPT)).items():
        (ROOT / page).write_text(text, encoding="utf-8", newline="\n")
    print(tables.markdown(runs(read_notes(KEPT))), end="")
    verdicts, _ = read(KEPT)
    kept = [verdict for items in verdicts.values() for verdict in items]
    for line in stale(kept, read_yaml(FINDINGS)):
        print(f"docs/findings.yaml, {line}: write it anew", file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except DataError as error:
        sys.exit(f"Error: {error}")

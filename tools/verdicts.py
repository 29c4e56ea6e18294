"""Keeps the verdicts of the last runs in the folders of papers, and writes the pages on them.

The module `kept_verdicts` copies the verdicts, and updates verdicts of earlier runs to the texts of
today's claims files. The module `readme_verdicts` makes texts for README.md, docs/privacy.md and
paper.md. All pages and texts follow from what is kept, and a test fails if they are stale.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

from kept_verdicts import Run, collect, data_of, read, read_notes, retell
from readme_verdicts import NONE, every_paper, inserted, question_of

from fedcore.errors import DataError
from fedcore.experiments.provenance import commit
from fedcore.files.strict_yaml import read_yaml
from fedcore.reports import tables
from fedcore.repro.config import claims
from fedcore.repro.plan.plan import load_plan
from fedcore.repro.site.left_out import by_reason
from fedcore.repro.verdicts import answers, records, verdict_pages
from fedcore.repro.verdicts.verdicts import WORDS, Verdict
from fedcore.words import counted

ROOT = Path(__file__).parents[1]
WRITTEN = (
    "`python tools/verdicts.py` writes this page from the last run, and from earlier runs for\n"
    "what the last run left out. A test fails if the page is stale."
)
OTHER_CODE = (
    "*cells by* is the commit of this repository that ran the cells (methods on problems), and\n"
    "*words by* the commit that wrote the verdicts. *by other code* counts cells that were run\n"
    "earlier, and whose histories `make restore` put back. *untimed* counts cells whose time is\n"
    "not in the seconds. If both counts are empty, nobody recorded them. `fedcore certify`\n"
    "compares a new run with `kept/records/`. These records may be of another day than the judged\n"
    "histories, so their seconds may differ.\n"
)
INDEX = "../../docs/verdicts.md"  # from a paper's folder
TIMES = (
    "A row adds up the CPU and wall seconds of an experiment's timed cells; *MB* is the largest\n"
    "memory of a cell. The notes on [the runs of all papers]"
    f"({INDEX}#the-runs)\nexplain *by other code* and *untimed*.\n"
)


def pages(root: Path) -> dict[str, str]:
    """Return the text of every page, by its path; docs/verdicts/ includes the papers' pages."""
    verdicts, run = read(root)
    found = {"docs/verdicts.md": index(verdicts, run)}
    for paper, items in verdicts.items():
        found[f"papers/{paper}/README.md"] = page(paper, items, run, root)
        included = f"```{{include}} ../../papers/{paper}/README.md\n:relative-docs: ..\n```\n"
        found[f"docs/verdicts/{paper}.md"] = included
    return found


def index(verdicts: dict[str, list[Verdict]], run: Run) -> str:
    """Return docs/verdicts.md: the answers, the counts, what the verdicts mean, and the runs."""
    found = [verdict for items in verdicts.values() for verdict in items]
    parts = ["# Verdicts\n", f"{WRITTEN}\n"]
    if not found:
        return "\n".join([*parts, NONE])
    for paper, items in verdicts.items():
        asked = question_of(ROOT, paper)
        link = f"[`{paper}`](../papers/{paper}/README.md)"
        parts.append(f"- {link}: {asked} **{answers.answer(items)}**\n")
    links = {paper: tables.Link(paper, f"../papers/{paper}/README.md") for paper in verdicts}
    counts = [
        {**row, "paper": links.get(str(row["paper"]), row["paper"])}
        for row in verdict_pages.counts(found)
    ]
    there = answers.tally(verdict_pages.printed_items(found))
    parts += ["As printed:\n", tables.markdown(counts)]
    parts.append("".join(f"- **{word}**: {WORDS[word]}\n" for word, _ in there))
    checks = answers.count_words(verdict_pages.checks(found))
    if checks:
        parts.append(f"Checks of this software, which say nothing about the papers: {checks}.\n")
    parts += ["## The runs\n", tables.markdown(runs(run)), OTHER_CODE]
    parts.append(
        "`fedcore verdicts --show ID` prints everything about one item;\n"
        "`fedcore verdicts --strict` compares a new run with these tables.\n"
    )
    return "\n".join(parts)


def page(paper: str, verdicts: list[Verdict], run: Run, root: Path = ROOT) -> str:
    """Return the page of one paper: first the answer, then items, facts, figures and the run."""
    notes = run[paper]
    parts = [
        f"# {notes['title']}\n",
        f"{notes['citation']}. [All papers]({INDEX}), [table](../{paper}/verdicts.tsv).",
        f"{WRITTEN}\n",
        f"Last run: {notes['date']}. Commits of this repository: {notes['commit']} ran the cells "
        f"(a cell is one method on one problem); {notes['judged by']} wrote the verdicts.\n",
        verdict_pages.opening(question_of(root, paper), verdicts),
        "## Items\n",
        verdict_pages.page(verdicts),
        *facts(root / "papers" / paper / "claims.yaml"),
        "## Data\n",
        tables.markdown([{"problem": name, **data} for name, data in data_of(notes).items()]),
    ]
    missing = by_reason(notes["missing"])
    parts += [f"- {', '.join(names)}: {why}\n" for why, names in missing.items()]
    times = [{"experiment": name, **total([time])} for name, time in notes["times"].items()]
    times.append({"experiment": "total", **total(notes["times"].values())})
    parts += [
        "## Environment\n",
        "The versions come from the stored histories of the cells. CPU, BLAS and system are those\n"
        "of the machine on which `python tools/verdicts.py` stored the run.\n",
        listed(notes["versions"] | notes["machine"]),
        "## Times\n",
        TIMES,
        tables.markdown(times),
        *(earlier(part) for part in notes.get("earlier", [])),
    ]
    return "\n".join(parts)


def facts(file: Path) -> list[str]:
    """Return the page parts for the facts and figures of a claims file, which have no verdict."""
    printed = claims.read(file)
    parts = []
    if told := printed["facts"]:
        parts += ["## Facts\n", "No run can show these facts to be false: they are not judged.\n"]
        rows = [{"printed": f["fact"], "place": f["source"], "is a": f["kind"]} for f in told]
        parts.append(tables.markdown(rows))
    if drawn := printed["figures"]:
        parts += ["## Figures without a verdict\n", "These figures are drawn, but not judged.\n"]
        parts.append("".join(f"- {f['source']}: {tables.escaped(f['shows'])}\n" for f in drawn))
    return parts


def earlier(part: Run) -> str:
    """Return the page part on an earlier run from which some verdicts are kept."""
    items = ", ".join(f"`{item}`" for item in part["items"])
    cost = total(part["times"].values())
    said = (
        f"Run of {part['date']}, commit {part['commit']}, {counted(cost['cells'], 'cell')}, "
        f"{counted(cost['wall seconds'], 'wall second')}. The last run left "
        f"{'this item' if len(part['items']) == 1 else 'these items'} out: {items}."
    )
    said = textwrap.fill(said, 100, break_on_hyphens=False, break_long_words=False)
    return f"## Earlier run\n\n{said}\n\n" + listed(part["versions"] | part["machine"])


def total(times: Collection[Run]) -> tables.Row:
    """Return what experiments took together: cells, their seconds, and the largest memory in MB.

    The number of cells that other code made, the number of cells without a time, and the CPU
    seconds are None if some run has not noted them.
    """

    def counts(name: str) -> float | None:
        return round(sum(t[name] for t in times), 1) if all(name in t for t in times) else None

    return {
        "cells": counts("cells"),
        "by other code": counts("by other code"),
        "untimed": counts("untimed"),
        "CPU seconds": counts("CPU seconds"),
        "wall seconds": round(sum(time["seconds"] for time in times), 1),
        "MB": max((time["MB"] for time in times), default=0),
    }


def runs(run: Run) -> list[tables.Row]:
    """Return a row per run that judged items: date, commits, machine, and time of its cells."""
    rows: list[tables.Row] = []
    for paper, last in run.items():
        for part in [last, *last.get("earlier", [])]:
            items = counted(len(part.get("items", [])), "item")
            named = paper if part is last else f"{paper}, {items} of before"
            rows.append({"paper": named, "date": part["date"], "cells by": part["commit"]})
            rows[-1]["words by"] = part["judged by"]
            rows[-1] |= total(part["times"].values()) | part["machine"]
    return rows


def listed(values: dict[str, str]) -> str:
    """Return names and values as a list in Markdown."""
    return "".join(f"- {name}: {tables.escaped(value)}\n" for name, value in values.items())


def codes() -> dict[str, str]:
    """Return the fingerprint of each cell's present code, by the cell's path."""
    plan = load_plan(read_yaml(ROOT / "config" / "config.yaml"))
    return {path: cell.code for path, cell in plan.cells.items()}


def note_tests(root: Path) -> None:
    """Record each item's test, if it has changed, in its paper's folder, with the seed."""
    seed = read_yaml(root / "config" / "config.yaml")["seed"]
    today = datetime.now(UTC).date().isoformat()
    for name, printed in every_paper().items():
        folder = root / "papers" / name
        records.record(folder, printed, date=today, commit=commit(root), seed=seed)


def main() -> None:
    """Collect the verdicts in results/, unless --pages-only is given, and write all pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    only = "write the pages anew from what is kept, and leave results/ alone"
    parser.add_argument("--pages-only", action="store_true", help=only)
    papers = every_paper()
    if not parser.parse_args().pages_only:
        rules = {name: records.fingerprints(paper) for name, paper in papers.items()}
        collect(ROOT / "results", ROOT, rules, codes())
    retell(ROOT, papers)
    note_tests(ROOT)
    for old in ROOT.glob("docs/verdicts/*.md"):
        old.unlink()
    for page, text in (pages(ROOT) | inserted(ROOT)).items():
        (ROOT / page).parent.mkdir(exist_ok=True)
        (ROOT / page).write_text(text, encoding="utf-8", newline="\n")
    print(tables.markdown(runs(read_notes(ROOT))), end="")


if __name__ == "__main__":
    try:
        main()
    except DataError as error:
        sys.exit(f"Error: {error}")

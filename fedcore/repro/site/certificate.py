"""A certificate: what of a kept run was made again elsewhere, and what agreed.

`write` writes it as a page in Markdown and as ``codecheck.yml`` (https://codecheck.org.uk).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from fedcore.datasets import fetching
from fedcore.experiments import provenance
from fedcore.files import checksums
from fedcore.reports import tables
from fedcore.repro.plan import kept_cells
from fedcore.repro.plan.draws import Cost
from fedcore.repro.plan.kept_cells import DIFFERS, DIGITS, RANGE, SAME, Ends, KeptRun
from fedcore.repro.plan.plan import Plan
from fedcore.repro.verdicts import verdict_pages
from fedcore.repro.verdicts.verdicts import NOT_RUN
from fedcore.words import counted

NOT_MADE = "not made"
WORDS = (SAME, DIGITS, RANGE, DIFFERS, NOT_MADE)
MEANING = {
    SAME: "every array of the history has the bytes of the kept one.",
    DIGITS: "the medians of all columns agree to one part in a thousand, or to rounding.",
    RANGE: "a median differs in its third digit and lies within the kept repeats and their twins.",
    DIFFERS: "a median lies elsewhere, or bytes differ where kernel and versions agree.",
    NOT_MADE: "its job failed, or its data could not be had.",
}
PERSON = "to be filled in by the person who ran it"


@dataclass
class Compared:
    """What was made again, and how it compares with what is kept.

    Attributes
    ----------
    runs : dict of str to KeptRun
        By paper.
    pool : mapping of str to Cost
        Cells that could have been drawn.
    cells : dict of str to str
        One of `WORDS` for each cell that was drawn.
    columns : list of (cell, column, kept, here, word)
        Values that do not agree to three digits.
    same, other_code : dict of str to bool, list of str
        Papers whose bytes must be the same, and cells that were kept by other code.
    machine, versions : dict of str to str
        Of this machine.
    words : list of (item, kept, here)
        Verdicts on whole papers: `judged` counts them, and this lists the verdicts that differ.
    inputs : dict of str to str
        SHA-256 of each file that was read.
    """

    runs: dict[str, KeptRun]
    pool: Mapping[str, Cost]
    cells: dict[str, str]
    columns: list[tuple[str, str, Ends, Ends, str]]
    same: dict[str, bool]
    other_code: list[str]
    machine: dict[str, str]
    versions: dict[str, str]
    judged: int = 0
    words: list[tuple[str, str, str]] = field(default_factory=list)
    inputs: dict[str, str] = field(default_factory=dict)
    commit: str = ""
    command: str = ""

    @property
    def disagreeing(self) -> int:
        """Number of cells and words that disagree or could not be made."""
        return sum(word in (DIFFERS, NOT_MADE) for word in self.cells.values()) + len(self.words)


def compare(
    plan: Plan,
    runs: dict[str, KeptRun],
    pool: Mapping[str, Cost],
    drawn: Collection[str],
    out: Path,
) -> Compared:
    """Compare the histories of `drawn` cells in the folder `out` with what is kept."""
    machine, versions = kept_cells.platform(), provenance.versions([])
    same = {name: kept_cells.same_arithmetic(run, machine, versions) for name, run in runs.items()}
    other = [c for c in drawn if plan.cells[c].code != runs[plan.cells[c].paper].cells[c].code]
    found = Compared(runs, pool, {}, [], same, other, machine, versions)
    found.commit = provenance.own_commit()
    for path in drawn:
        file, paper = out / "results/histories" / f"{path}.h5", plan.cells[path].paper
        if not file.is_file():
            found.cells[path] = NOT_MADE
            continue
        must = same[paper] and path not in other
        word, columns = kept_cells.compared(runs[paper].cells[path], file, must)
        found.cells[path] = word
        found.columns += [(path, *column) for column in columns]
    return found


def words(
    papers: Collection[str], out: Path, checkout: Path
) -> tuple[int, list[tuple[str, str, str]]]:
    """Return how many verdicts of whole papers were compared, and the verdicts that differ."""
    number, differing = 0, []
    for paper in papers:
        kept, here = (
            checkout / "papers" / paper / "verdicts.tsv",
            out / f"results/verdicts/{paper}.tsv",
        )
        if kept.is_file() and here.is_file():
            now = {verdict.id: verdict.word for verdict in verdict_pages.read(here)}
            for verdict in verdict_pages.read(kept):
                if verdict.word != NOT_RUN:
                    number += 1
                    new = now.get(verdict.id, NOT_RUN)
                    if new != verdict.word:
                        differing.append((f"{paper}/{verdict.id}", verdict.word, new))
    return number, differing


def inputs(plan: Plan, cells: Collection[str], checkout: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of data and of configuration that cells depend on."""
    found = {}
    papers = sorted({plan.cells[cell].paper for cell in cells})
    for paper in papers:
        for file in (plan.files[paper].paper, plan.files[paper].claims):
            if file.is_file():
                name = f"papers/{paper}/{file.name}"
                found[name] = checksums.file_sha256(file)
    read = {f"{plan.cells[cell].paper}/{p}" for cell in cells for p in plan.cells[cell].problems}
    for dataset in sorted({plan.problems[name].get("dataset", "") for name in read} - {""}):
        record = Path(plan.config["paths"]["raw"], dataset, fetching.RECORD)
        if record.is_file():
            sums = json.loads(record.read_text(encoding="utf-8"))
            found |= {f"{dataset}/{file}": str(value) for file, value in sums.items()}
    return found


def sentence(found: Compared) -> str:
    """Return in a sentence how many cells agree."""
    n = Counter(found.cells.values())
    told = ", ".join(f"{n[word]} {word}" for word in WORDS if n[word])
    if found.judged:
        told = f"{told}; {len(found.words)} of {counted(found.judged, 'word')} differ"
    return f"{counted(len(found.cells), 'cell')} made again: {told}"


def shares(found: Compared) -> list[tables.Row]:
    """Return for each paper which share of its cells, items and CPU seconds was compared."""
    rows: list[tables.Row] = []
    for paper, run in found.runs.items():
        made = [c for c, word in found.cells.items() if c in run.cells and word != NOT_MADE]
        n = Counter(found.cells[cell] for cell in found.cells if cell in run.cells)
        seconds = [sum(run.cells[c].cpu for c in cells) for cells in (made, run.cells)]
        behind = [set(cells) <= set(made) for cells in run.items.values()]
        rows.append(
            {
                "paper": paper,
                "run of": run.date,
                "commit": run.commit,
                "cells": f"{len(made)} of {len(run.cells)}",
                "items": f"{sum(behind)} of {len(behind)}",
                "CPU seconds": f"{seconds[0]:.0f} of {seconds[1]:.0f}",
                **{word: n[word] for word in WORDS},
            }
        )
    return rows


def page(found: Compared) -> str:
    """Return the certificate in Markdown."""
    title = f"{counted(found.disagreeing, 'disagreement')}"
    now = datetime.now(UTC).date().isoformat()
    parts = [
        f"# Certificate of a repeated run: {title}\n",
        "It says what was made again and what agreed. It does not say whether the papers are right:"
        " that is in the report.\n",
        "## What was made again\n",
        f"{sentence(found)}. They were drawn from the {counted(len(found.pool), 'cell')} that can "
        f"be compared, by the seed and for the time that the command below names. "
        f"Commit {found.commit}, {now}.\n",
        tables.markdown(shares(found)),
        "An item counts if all cells on which it rests were made again.\n",
        "".join(f"- *{word}*: {MEANING[word]}\n" for word in WORDS),
    ]
    bytewise = [paper for paper, same in found.same.items() if same]
    parts.append(
        f"Kernel and versions agree, and bytes must: {', '.join(bytewise) or 'of no paper'}.\n"
    )
    if found.other_code:
        parts.append(f"By other code than the kept run: {', '.join(found.other_code)}.\n")
    differing = [cell for cell, word in found.cells.items() if word in (DIFFERS, NOT_MADE)]
    if differing:
        parts += ["## What disagrees\n"]
        parts.append("".join(f"- `{cell}`: {found.cells[cell]}\n" for cell in differing))
    if found.columns:
        parts += ["## Third digits that differ\n"]
        rows: list[tables.Row] = [
            {
                "cell": cell,
                "column": name,
                "kept": old.median,
                "here": new.median,
                "kept range": f"{_told(old.low)} to {_told(old.high)}",
                "so": word,
            }
            for cell, name, old, new, word in found.columns
        ]
        parts.append(tables.markdown(rows))
    if found.judged:
        parts += ["## Words\n", f"{counted(found.judged, 'word')} of whole papers compared.\n"]
    if found.words:
        parts.append(
            tables.markdown([{"item": i, "kept": a, "here": b} for i, a, b in found.words])
        )
    runs = found.runs.items()
    names = {*found.machine, *(name for _, run in runs for name in run.machine)}
    versions = {*found.versions, *(name for _, run in runs for name in run.versions)}
    places: list[tables.Row] = [
        {"": name, "here": found.machine.get(name), **{p: r.machine.get(name) for p, r in runs}}
        for name in sorted(names)
    ]
    places += [
        {"": name, "here": found.versions.get(name), **{p: r.versions.get(name) for p, r in runs}}
        for name in sorted(versions)
    ]
    sums: list[tables.Row] = [{"file": f, "sha256": s} for f, s in sorted(found.inputs.items())]
    parts += [
        "## Machine and versions\n",
        tables.markdown(places),
        "## Inputs\n",
        tables.markdown(sums),
        "## Check it yourself\n",
        f"```console\n$ git checkout {found.commit}\n$ make env && . .venv/bin/activate\n"
        f"$ {found.command}\n```\n",
        f"Name, place of work, signature, date: {PERSON}.\n",
    ]
    return "\n".join(parts)


def _told(number: float | None) -> str:
    return "none" if number is None else tables.show(number)


def codecheck(found: Compared) -> str:
    """Return the certificate as ``codecheck.yml``; a person adds names, DOI and address."""
    import yaml

    return yaml.safe_dump(
        {
            "version": "https://codecheck.org.uk/spec/config/1.0/",
            "paper": {"title": "fedcore", "reference": PERSON},
            "manifest": [
                {"file": f"results/histories/{cell}.h5", "comment": word}
                for cell, word in found.cells.items()
            ],
            "codechecker": [{"name": PERSON}],
            "summary": sentence(found),
            "shares": [{k: v for k, v in row.items() if v} for row in shares(found)],
            "commit": found.commit,
            "machine": found.machine,
            "versions": found.versions,
            "inputs": found.inputs,
            "check_time": datetime.now(UTC).isoformat(timespec="seconds"),
            "certificate": PERSON,
            "report": PERSON,
        },
        sort_keys=False,
        allow_unicode=True,
    )


def write(found: Compared, out: Path) -> list[Path]:
    """Write the certificate into a folder; return its files, the page first."""
    texts = {"certificate.md": page(found), "codecheck.yml": codecheck(found)}
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    return [out / name for name in texts]

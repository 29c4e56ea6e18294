"""Certificate that says whether each cell (planned run) of a rerun agrees with the kept run.

The kept run is an earlier run whose records are in the repository. The certificate is written as
``certificate.md`` and, in the format of https://codecheck.org.uk, as ``codecheck.yml``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from fedcore.datasets import fetching
from fedcore.experiments import provenance
from fedcore.files import checksums
from fedcore.reports import tables
from fedcore.repro.config import configuration, papers
from fedcore.repro.plan import kept_cells
from fedcore.repro.plan.kept_cells import DIFFERS, DIGITS, RANGE, SAME, KeptRun
from fedcore.repro.plan.machine import describe_arithmetic
from fedcore.repro.plan.plan import Plan
from fedcore.repro.verdicts import verdict_pages
from fedcore.repro.verdicts.verdicts import NOT_RUN
from fedcore.words import counted

NOT_MADE = "not made"
MEANING = {
    SAME: "every array of the history has the bytes of the kept one.",
    DIGITS: "the medians of all columns agree to one part in a thousand, or to rounding.",
    RANGE: "a median differs in its third digit, and lies in the range of the kept repeats and "
    "twins.",
    DIFFERS: "a median lies outside this range; or the bytes differ although kernel and versions "
    "agree; or the bytes agree but the recorded medians do not.",
    NOT_MADE: "its job failed, or its data were not available.",
}
PERSON = "to be filled in by the person who ran it"
# Parts of a certificate that are tables, by what the page calls them.
PARTS = {
    "disagreeing": "What disagrees",
    "columns": "Third digits that differ",
    "words": "Verdicts of whole papers that differ",
    "platform": "Machine and versions",
    "inputs": "Inputs",
}


def compare(
    plan: Plan,
    runs: Mapping[str, KeptRun],
    drawn: Collection[str],
    whole: Collection[str],
    out: Path,
    records: Path,
    command: str,
) -> dict[str, Any]:
    """Return the certificate for the cells in `drawn`, which were computed in the folder `out`.

    Parameters
    ----------
    plan : Plan
    runs : mapping of str to KeptRun
        The kept run of each paper.
    drawn, whole : collection of str
        `drawn` names the cells that were to be computed again. `whole` names the papers that were
        computed again completely. The certificate compares the verdicts of the papers in `whole`.
    out : path
    records : path
        Folder with the records of the kept runs.
    command : str
        Command that computes the same cells again.
    """
    machine, versions = describe_arithmetic(), provenance.versions([])
    same = [p for p, run in runs.items() if kept_cells.same_arithmetic(run, machine, versions)]
    found, other, columns = dict.fromkeys(drawn, NOT_MADE), [], []
    for path in drawn:
        file, paper = out / "results/histories" / f"{path}.h5", plan.cells[path].paper
        kept = runs[paper].cells[path]
        if kept.code != plan.cells[path].code:
            other.append(path)
        if file.is_file():
            must = paper in same and path not in other
            found[path], rows = kept_cells.compared(kept, file, must)
            columns += rows
    n = Counter(found.values())
    told = ", ".join(f"{n[word]} {word}" for word in MEANING if n[word])
    machines = {"here": machine | versions}
    machines |= {paper: run.machine | run.versions for paper, run in runs.items()}
    names = sorted({name for known in machines.values() for name in known})
    return {
        "version": "https://codecheck.org.uk/spec/config/1.0/",
        "paper": {"title": "fedcore", "authors": [{"name": PERSON}], "reference": PERSON},
        "manifest": [
            {"file": f"results/histories/{cell}.h5", "comment": word}
            for cell, word in found.items()
        ],
        "codechecker": [{"name": PERSON}],
        "summary": f"{counted(len(found), 'cell')} made again: {told}",
        "shares": _shares(runs, found),
        "disagreeing": [
            {"cell": cell, "so": word}
            for cell, word in found.items()
            if word in (DIFFERS, NOT_MADE)
        ],
        "columns": columns,
        "words compared of": [*whole],
        "words": _words(whole, out),
        "bytes must agree": same,
        "by other code": other,
        "commit": provenance.own_commit(),
        "command": command,
        "platform": [
            {"": name, **{where: known.get(name) for where, known in machines.items()}}
            for name in names
        ],
        "inputs": _inputs(plan, drawn, records),
        "check_time": datetime.now(UTC).isoformat(timespec="seconds"),
        "certificate": PERSON,
        "report": PERSON,
    }


def disagreements(found: Mapping[str, Any]) -> int:
    """Return the number of cells and verdicts that disagree or could not be computed."""
    return len(found["disagreeing"]) + len(found["words"])


def _words(whole: Collection[str], out: Path) -> list[tables.Row]:
    """Return a row for each item of the papers in `whole` whose verdict is not the kept one."""
    now = verdict_pages.words_of(verdict_pages.read_papers(out / "results/verdicts", whole))
    kept = verdict_pages.kept_tables(papers.CHECKOUT / papers.FOLDER)
    before = [v for file in kept if file.parent.name in whole for v in verdict_pages.read(file)]
    return [
        {"item": item, "kept": word, "here": now.get(item, NOT_RUN)}
        for item, word in verdict_pages.words_of(before).items()
        if word not in (NOT_RUN, now.get(item, NOT_RUN))
    ]


def _inputs(plan: Plan, cells: Collection[str], records: Path) -> list[tables.Row]:
    """Return the SHA-256 of all records, configuration and data files that the cells depend on."""
    files = {f"config/{file.name}": file for file in configuration.files()}
    for paper in {plan.cells[cell].paper for cell in cells}:
        for file in (plan.files[paper].paper, plan.files[paper].claims):
            files[f"papers/{paper}/{file.name}"] = file
        files[f"kept/records/{paper}.jsonl"] = records / f"{paper}.jsonl"
    found = {name: checksums.file_sha256(file) for name, file in files.items() if file.is_file()}
    read = {f"{plan.cells[cell].paper}/{p}" for cell in cells for p in plan.cells[cell].problems}
    for dataset in {plan.problems[name].get("dataset", "") for name in read} - {""}:
        record = Path(plan.config["paths"]["raw"], dataset, fetching.RECORD)
        if record.is_file():
            sums = json.loads(record.read_text(encoding="utf-8"))
            found |= {f"{dataset}/{file}": str(value) for file, value in sums.items()}
    return [{"file": file, "sha256": sha} for file, sha in sorted(found.items())]


def _shares(runs: Mapping[str, KeptRun], found: Mapping[str, str]) -> list[tables.Row]:
    """Return how many of each paper's cells, items and CPU seconds the repeated run covers."""
    rows: list[tables.Row] = []
    for paper, run in runs.items():
        words = {cell: word for cell, word in found.items() if cell in run.cells}
        n = Counter(words.values())
        made = {cell for cell, word in words.items() if word != NOT_MADE}
        seconds = [sum(run.cells[cell].cpu for cell in cells) for cells in (made, run.cells)]
        behind = [made.issuperset(cells) for cells in run.items.values()]
        row = {"paper": paper, "run of": run.date, "commit": run.commit}
        row["cells"] = f"{len(made)} of {len(run.cells)}"
        row["items"] = f"{sum(behind)} of {len(behind)}"
        row["CPU seconds"] = f"{seconds[0]:.0f} of {seconds[1]:.0f}"
        rows.append(row | {word: n[word] for word in MEANING})
    return rows


def page(found: Mapping[str, Any]) -> str:
    """Return a certificate in Markdown."""
    number = counted(disagreements(found), "disagreement")
    commit = found["commit"].removesuffix("-dirty")
    changed = "" if commit == found["commit"] else ", with changes that no commit has"
    parts = [
        f"# Certificate of a repeated run: {number}\n",
        "It says what was made again and what agreed. It does not say whether the papers are right:"
        " that is in the report.\n",
        "## What was made again\n",
        f"{found['summary']}. Commit {commit}{changed}, {found['check_time']}.\n",
        tables.markdown(found["shares"]),
        "An item counts if all cells behind its verdict were made again. CPU seconds were"
        " measured in the kept run. `codecheck.yml` names every cell.\n",
        "".join(f"- *{word}*: {meaning}\n" for word, meaning in MEANING.items()),
    ]
    if found["bytes must agree"]:
        same = ", ".join(found["bytes must agree"])
        parts.append(f"Kernel, instructions and versions agree, so bytes must agree: {same}.\n")
    else:
        parts.append("Kernel, instructions or versions differ, so bytes need not agree.\n")
    if found["by other code"]:
        parts.append(f"Code differs from the kept run: {', '.join(found['by other code'])}.\n")
    if found["words compared of"]:
        parts.append(f"Verdicts were compared for {', '.join(found['words compared of'])}.\n")
    for key, title in PARTS.items():
        if found[key]:
            parts += [f"## {title}\n", tables.markdown(found[key])]
    parts += [
        "## Check it yourself\n",
        f"```console\n$ git checkout {commit}\n$ make env && . .venv/bin/activate\n"
        f"$ {found['command']}\n```\n",
        f"Name, place of work, signature, date: {PERSON}.\n",
    ]
    return "\n".join(parts)


def write(found: Mapping[str, Any], out: Path) -> list[Path]:
    """Write a certificate into a folder; return the paths of its Markdown page and YAML file."""
    check = yaml.safe_dump(dict(found), sort_keys=False, allow_unicode=True)
    texts = {"certificate.md": page(found), "codecheck.yml": check}
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    return [out / name for name in texts]

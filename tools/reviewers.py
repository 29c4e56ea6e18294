"""Writes what reviewers ask for: docs/reviewers.md, codemeta.json and paper.bib.

For every headline claim, the page says which command checks it, how long the command takes, and
which verdict is kept. It also says what differed under other BLAS kernels and Python versions,
according to the certificates in kept/certificates/. codemeta.json and paper.bib follow from
pyproject.toml and CITATION.cff. A test fails if one of these files is stale.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from fedcore.files.strict_yaml import read_yaml
from fedcore.reports import tables
from fedcore.repro.config import claims
from fedcore.repro.plan import kept_cells
from fedcore.repro.site import certificate
from fedcore.repro.verdicts import verdict_pages
from fedcore.repro.verdicts.decision_rules import (
    DOUBT,
    FAILS,
    FEW,
    HOLDS,
    SILENT,
    UNDECIDED,
    judge_runs,
)
from fedcore.repro.verdicts.verdicts import NOT_RUN, Verdict, demand_of

ROOT = Path(__file__).parents[1]
OWNER = """When the first version is released, the owner of the project adds the authors' names, the
DOI of an archive and the address of a public repository."""
ASKED: list[tables.Row] = [
    {"a reviewer asks": question, "answer": answer}
    for question, answer in (
        (
            "Does it install and run?",
            "`make quickstart`: every method, table and figure, small, on stand-in data; minutes. "
            "The first call makes `.venv`, which needs the package index",
        ),
        (
            "Are the results those of this code?",
            "`. .venv/bin/activate; fedcore certify`: ten minutes, and a certificate",
        ),
        (
            "Can all be made again?",
            "`make reproduce`; `fedcore certify --minutes 600` compares it with the kept run",
        ),
        ("Is it tested?", "`make test`, and `make lint`"),
        ("What do the words mean?", tables.Link("How items are judged", "judging.md")),
        (
            "What machine does it need?",
            "Linux or macOS, two cores, no GPU; hours and memory stand in the table below. "
            "`fedcore job forecast` says them for your machine. Without PyTorch `fedrep` is left "
            "out",
        ),
    )
]
BADGES: list[tables.Row] = [
    {"ACM's badge": badge, "what answers it": answer}
    for badge, answer in (
        ("Artifacts Available", "the owner's: an archive with a DOI; there is none yet"),
        (
            "Artifacts Evaluated: Functional",
            "`make quickstart`, `make test`. CelebA needs an agreement; FEMNIST and Sent140 are "
            "not at hand: what needs them is not run",
        ),
        (
            "Artifacts Evaluated: Reusable",
            tables.Link("methods, data and papers of one's own", "adding.md"),
        ),
        (
            "Results Reproduced",
            "the tables below; `fedcore certify` writes what was compared and what agreed. "
            "Networks rest on kept histories of other commits, and no certificate covers them",
        ),
    )
]
TOP = f"""# For reviewers

`python tools/reviewers.py` writes this page from the stored run; a test fails if the page is stale.
{OWNER}

{tables.markdown(ASKED)}
{tables.markdown(BADGES)}
`fedcore certify` writes a certificate: a file for [CODECHECK](https://codecheck.org.uk), and a page
for people. The certificate names what disagrees with the stored run; if anything disagrees or could
not be made, `fedcore certify` ends with status 1. In the tables below, *minutes* are CPU minutes on
the machine of the stored run. If no minutes are given, the claim rests on formulas alone, or no run
of the paper is in `kept/records/`; the command then runs the workflow of the whole paper.
"""
TAKES = """CPU hours and memory are those of the stored run; the hours include making the data.
`make reproduce` downloads w8a, MNIST, Fashion-MNIST and CIFAR, or reads them from the folder that
`FEDCORE_MIRROR` names. Networks also need PyTorch; the page of `fedrep` says how long its stored
histories took.
"""
RESTORED = "snakemake --cores 2 --configfile config/kept.yaml"  # with kept histories
OURS = """The project itself made these certificates by `fedcore certify`, on machines of its own.
*By later code* counts the cells whose code has changed since the kept run.
"""
OPEN = """These are the undecided items (printed claims) of the papers in the table above, grouped
by what would decide them. The page of `fedrep` lists the undecided items of `fedrep`.
"""
RUNS, LONGER = "More runs", "Longer runs, or other sizes"
AUTHORS, NOTHING = "A word of the authors", "Nothing that a run can give"
DECIDES = {
    RUNS: "*It then* is the verdict if further runs agree as often as the present ones.\n"
    "*CPU hours* are an upper bound, as if all cells (runs of methods on problems) that\n"
    "the item needs got that many more runs. No hours are given if one point decides alone.\n",
    LONGER: "The runs are too short, or have the wrong sizes, to show whether the item is true.\n",
    AUTHORS: "The paper leaves something open. If it is filled in one way, the item holds; if it\n"
    "is filled in another way, the item fails. Or two ways give numbers on both sides of the\n"
    "printed number. Or more runs would lead to such a disagreement.\n",
    NOTHING: "For a printed number: the runs spread too far, or the number is too far from their\n"
    "mean to hold and too near to fail. For a sentence: even hundreds of runs do not show\n"
    "whether most of them agree with it. For either: rounding decides.\n",
}
# The software of `paper.md`, and what it rests on.
OTHERS: dict[str, dict[str, str]] = {
    "fl4health": {
        "type": "misc", "title": "FL4Health: facilitating federated learning research in health",
        "author": "{Vector Institute}", "year": "2026",
        "url": "https://github.com/VectorInstitute/FL4Health",
    },
    "pfllib": {
        "type": "article", "title": "PFLlib: A Beginner-Friendly and Comprehensive Personalized "
        "Federated Learning Library and Benchmark", "author": "Zhang, Jianqing and others",
        "journal": "Journal of Machine Learning Research", "volume": "26", "year": "2025",
        "eprint": "2312.04992", "archiveprefix": "arXiv",
    },
    "flower": {
        "type": "misc", "title": "Flower: A Friendly Federated Learning Research Framework",
        "author": "Beutel, Daniel J. and others", "year": "2020",
        "eprint": "2007.14390", "archiveprefix": "arXiv",
    },
    "hartebrodt": {
        "type": "article", "title": "Federated horizontally partitioned principal component "
        "analysis for biomedical applications", "author": "Hartebrodt, Anne and R{\\\"o}ttger, "
        "Richard", "journal": "Bioinformatics Advances", "volume": "2", "year": "2022",
        "doi": "10.1093/bioadv/vbac026",
    },
    "diffprivlib": {
        "type": "misc", "title": "Diffprivlib: The IBM Differential Privacy Library",
        "author": "Holohan, Naoise and Braghin, Stefano and Mac Aonghusa, P{\\'o}l and Levacher, "
        "Killian", "year": "2019", "eprint": "1907.02444", "archiveprefix": "arXiv",
    },
    "benchopt": {
        "type": "inproceedings", "title": "Benchopt: Reproducible, efficient and collaborative "
        "optimization benchmarks", "author": "Moreau, Thomas and others",
        "booktitle": "Advances in Neural Information Processing Systems", "year": "2022",
        "eprint": "2206.13424", "archiveprefix": "arXiv",
    },
    "showyourwork": {
        "type": "misc", "title": "Mapping stellar surfaces III: An Efficient, Scalable, and "
        "Open-Source Doppler Imaging Model", "author": "Luger, Rodrigo and others", "year": "2021",
        "eprint": "2110.06271", "archiveprefix": "arXiv",
        "note": "The article that introduces showyourwork",
    },
    "snakemake": {
        "type": "article", "title": "Sustainable data analysis with Snakemake",
        "author": "M{\\\"o}lder, Felix and others", "journal": "F1000Research", "volume": "10",
        "year": "2021", "doi": "10.12688/f1000research.29032.2",
    },
    "codecheck": {
        "type": "article", "title": "CODECHECK: an Open Science initiative for the independent "
        "execution of computations underlying research articles during peer review to improve "
        "reproducibility",
        "author": "N{\\\"u}st, Daniel and Eglen, Stephen J.", "journal": "F1000Research",
        "volume": "10", "year": "2021", "doi": "10.12688/f1000research.51738.2",
    },
}  # fmt: skip

# Fields of BibTeX, and what CITATION.cff calls them.
FIELDS = {
    "journal": "journal",
    "booktitle": "collection-title",
    "volume": "volume",
    "number": "issue",
    "doi": "doi",
}


def page(root: Path) -> str:
    """Return docs/reviewers.md: for each headline claim its command, minutes and kept verdict."""
    parts, runs = [TOP], kept_runs(root)
    for file in sorted(root.glob("papers/*/claims.yaml")):
        paper, printed = file.parent.name, claims.read(file)
        run = runs.get(paper)
        kept = file.with_name("verdicts.tsv")
        words = {v.id: v.word for v in verdict_pages.read(kept)} if kept.is_file() else {}
        rows: list[tables.Row] = []
        for item in printed["items"]:
            if "headline" in item:
                cells = run.items.get(item["id"], []) if run is not None else []
                command = f"`make reproduce PAPERS={paper}`"
                if (root / "kept" / "histories" / paper).is_dir():
                    command = f"`make restore`, and `{RESTORED} -- {paper}`"
                minutes = None
                if run is not None and cells:
                    command = f"`fedcore certify {paper} --item {item['id']}`"
                    minutes = round(sum(run.cells[cell].cpu for cell in cells) / 60, 1)
                rows.append(
                    {"claim": f"{item['title']} ({item['source']})", "command": command,
                     "minutes": minutes, "word": words.get(item["id"], NOT_RUN)}
                )  # fmt: skip
        if rows:
            parts += [f"## [{paper}](../papers/{paper}/README.md)\n", tables.markdown(rows)]
    parts += [*resources(runs), *open_items(root, runs)]
    return "\n".join([*parts, *certificates(root / "kept" / "certificates")])


def kept_runs(root: Path) -> dict[str, kept_cells.KeptRun]:
    """Return the record of each paper's kept run; papers without a record are absent."""
    files = sorted((root / kept_cells.FOLDER).glob("*.jsonl"))
    return {file.stem: kept_cells.read(file) for file in files}


def resources(runs: dict[str, kept_cells.KeptRun]) -> list[str]:
    """Return what each paper's kept run took: CPU hours and the memory of the largest job."""
    rows: list[tables.Row] = []
    for paper, run in runs.items():
        seconds = sum(cell.cpu for cell in run.cells.values()) + sum(run.problems.values())
        rows.append(
            {"paper": paper, "cells": len(run.cells), "CPU hours": round(seconds / 3600, 2),
             "largest job, GB": round(max(cell.mb for cell in run.cells.values()) / 1000, 1),
             "run of": run.date, "CPU": run.machine["CPU"]}
        )  # fmt: skip
    return ["## What a run takes\n", TAKES, tables.markdown(rows)] if rows else []


def open_items(root: Path, runs: dict[str, kept_cells.KeptRun]) -> list[str]:
    """Return what would decide each undecided item of the papers with a kept record."""
    found: dict[str, list[tables.Row]] = {kind: [] for kind in DECIDES}
    for paper, run in runs.items():
        folder = root / "papers" / paper
        printed = claims.read(folder / "claims.yaml")
        items = claims.by_id(printed)
        for verdict in verdict_pages.printed_items(verdict_pages.read(folder / "verdicts.tsv")):
            if verdict.word != UNDECIDED:
                continue
            kind, growth, then = what_decides(verdict, items[verdict.id], printed["changes"])
            row: tables.Row = {"paper": paper, "item": f"{verdict.title} ({verdict.source})"}
            if kind == RUNS:
                cells = run.items.get(verdict.id, [])
                hours = sum(run.cells[cell].cpu for cell in cells) * (growth - 1) / 3600
                row |= {"it then": then, "CPU hours at most": round(hours, 2) if growth else None}
            found[kind].append(row | {"why it is undecided": verdict.why})
    parts = ["## Undecided items\n", OPEN]
    for kind, rows in found.items():
        if rows:
            parts += [f"### {kind}\n", DECIDES[kind], tables.markdown(rows)]
    return parts


def what_decides(
    verdict: Verdict, item: dict[str, Any], changes: dict[str, Any]
) -> tuple[str, float, str]:
    """Return what would decide an undecided item.

    Returns
    -------
    kind : str
        A key of `DECIDES`.
    growth : float
        How many times as many runs would decide the item if they agreed as often; 0 if the kept
        table does not tell.
    then : str
        The verdict that the item would then have, or an empty text if more runs do not decide it.
    """
    ran = [one for one in verdict.readings if not one.replaces and not one.obstacle]
    printed = [one for one in item["readings"] if not one["replaces"]]
    demand = demand_of(item, printed[0], changes)
    states = {one.state for one in ran} - {UNDECIDED}
    growths, lacks = [1.0], set[str]()
    for one in ran:
        unsure = [part for part in one.parts.values() if part.state == UNDECIDED]
        lacks |= {part.lack for part in unsure}
        for part in unsure:
            if part.lack == FEW:
                agree, n = part.share
                runs = [1.0] * agree + [0.0] * (n - agree)
                each = demand._replace(cells=len(one.parts))
                growths.append(judge_runs([runs], {}, each).growth)
        if unsure and {part.lack for part in unsure} <= {FEW, DOUBT}:
            most = [part.lack == FEW and 2 * part.share[0] > part.share[1] for part in unsure]
            states.add(HOLDS if all(most) else FAILS)
    if len(states) > 1 or not lacks:
        return AUTHORS, 0.0, ""
    if SILENT in lacks:
        return LONGER, 0.0, ""
    if not lacks <= {FEW, DOUBT}:
        return NOTHING, 0.0, ""
    return RUNS, 0.0 if DOUBT in lacks else max(growths), states.pop()


def certificates(folder: Path) -> list[str]:
    """Return what certificates of other kernels and Pythons say, and a list of all differences."""
    rows: list[tables.Row] = []
    differing: list[str] = []
    for file in sorted(folder.glob("*.yml")):
        found = read_yaml(file)
        here = {row[""]: row["here"] for row in found["platform"]}
        n = Counter(entry["comment"] for entry in found["manifest"])
        judged = found["words compared of"]
        compared = [f"{part['paper']}, {part['cells']}" for part in found["shares"]]
        rows.append(
            {"certificate": file.stem, "CPU": here["CPU"], "BLAS": here["BLAS"],
             "Python": here["python"], "cells made again": "; ".join(compared),
             "by later code": len(found["by other code"]),
             **{word: n[word] for word in certificate.MEANING},
             "words compared of": ", ".join(judged) or "no whole paper",
             "words that differ": len(found["words"]) if judged else None,
             "command": f"`{found['command']}`"}
        )  # fmt: skip
        for part in ("words", "columns"):
            if found[part]:
                differing += [
                    f"### {file.stem}: {certificate.PARTS[part].lower()}\n",
                    tables.markdown(found[part]),
                ]
    if not rows:
        return []
    meaning = "".join(f"- *{word}*: {said}\n" for word, said in certificate.MEANING.items())
    return [
        "## Other machines, kernels and Pythons\n",
        OURS,
        tables.markdown(rows),
        meaning,
        *differing,
    ]


def codemeta(root: Path) -> str:
    """Return the text of codemeta.json (version 3.0), from pyproject.toml and CITATION.cff."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cited = read_yaml(root / "CITATION.cff")
    found: dict[str, Any] = {
        "@context": "https://w3id.org/codemeta/3.0",
        "@type": "SoftwareSourceCode",
        "name": project["name"],
        "version": project["version"],
        "description": project["description"],
        "license": f"https://spdx.org/licenses/{project['license']}",
        "programmingLanguage": {"@type": "ComputerLanguage", "name": "Python"},
        "runtimePlatform": f"Python {project['requires-python']}",
        "operatingSystem": [
            line.rpartition(" :: ")[2]
            for line in project["classifiers"]
            if line.startswith("Operating System")
        ],
        "softwareRequirements": project["dependencies"],
        "keywords": project["keywords"],
        "author": [{"@type": "Organization", "name": who["name"]} for who in cited["authors"]],
        "developmentStatus": "active",
        "referencePublication": [
            {
                "@type": "ScholarlyArticle",
                "name": work["title"],
                "identifier": work.get("doi", work["identifiers"][0]["value"]),
            }
            for work in cited["references"]
        ],
    }
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def bibliography(root: Path) -> str:
    """Return the text of paper.bib: the papers in CITATION.cff, and the works in `OTHERS`."""
    entries = dict(OTHERS)
    for work in read_yaml(root / "CITATION.cff")["references"]:
        people = [f"{who['family-names']}, {who['given-names']}" for who in work["authors"]]
        eprint = next(one["value"] for one in work["identifiers"])
        name = f"{work['authors'][0]['family-names'].lower()}{work['year']}"
        entries[name] = {
            "type": "misc", "title": work["title"],
            "author": " and ".join(people), "year": str(work["year"]),
            **{key: str(work[known]) for key, known in FIELDS.items() if known in work},
            "eprint": eprint.removeprefix("arXiv:"), "archiveprefix": "arXiv",
        }  # fmt: skip
        if "journal" in work:
            entries[name]["type"] = "article"
        if "collection-title" in work:
            entries[name]["type"] = "inproceedings"
        if "start" in work:
            entries[name]["pages"] = f"{work['start']}--{work['end']}"
    lines = []
    for name, given in sorted(entries.items()):
        fields = [f"  {key} = {{{value}}}" for key, value in given.items() if key != "type"]
        lines.append(f"@{given['type']}{{{name},\n" + ",\n".join(fields) + "\n}\n")
    return "\n".join(lines)


def written(root: Path) -> dict[str, str]:
    """Return the texts of all files that this program writes, by their paths."""
    made = {"docs/reviewers.md": page(root), "codemeta.json": codemeta(root)}
    return made | {"paper.bib": bibliography(root)}


def main() -> None:
    """Write all files, and print their names."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    for name, text in written(ROOT).items():
        (ROOT / name).write_text(text, encoding="utf-8", newline="\n")
        print(name)


if __name__ == "__main__":
    main()

"""Keeps the checksum and the last values of each history of a run, in kept/records/.

A history is the record of one cell, a planned run of a method. ``python tools/kept_records.py
[PAPER …]`` reads results/, and ``fedcore certify`` compares new runs with the written records. Call
the program on the machine of the run, because the records describe the machine. A restored history
lacks arrays and gets no new record. Its earlier record stays, with the description of its machine,
if the cell's code is still the same. Earlier records of experiments that a run leaves out stay,
too.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from fedcore.errors import DataError, FedcoreError
from fedcore.history import History
from fedcore.repro.commands.probe import probe_speed
from fedcore.repro.config.configuration import read_configuration
from fedcore.repro.config.papers import CHECKOUT
from fedcore.repro.plan import job_costs, kept_cells
from fedcore.repro.plan.machine import describe_arithmetic
from fedcore.repro.plan.plan import Plan, load_plan
from fedcore.repro.verdicts.evidence import Evidence
from fedcore.words import counted


def joined(first: dict[str, str], second: dict[str, str]) -> dict[str, str]:
    """Return one description of two machines, with both values where the machines differ.

    If the machines differ, no machine need give the same bytes.
    """
    found = dict(first)
    for name, value in second.items():
        if value not in first[name].split(" and "):
            found[name] = f"{first[name]} and {value}"
    return found


def kept_run(plan: Plan, paper: str, before: kept_cells.KeptRun | None) -> kept_cells.KeptRun:
    """Return the record of a paper's run; `before` is the record that was kept earlier, if any."""
    results = Path(plan.config["paths"]["results"])
    planned = results / "plans" / f"{paper}.json"
    if not planned.is_file():
        raise DataError(f"there is no {planned}: run `snakemake {paper}` first")
    cells: dict[str, kept_cells.Kept] = {}
    versions: dict[str, str] = {}
    commits = set()
    machine = earlier = describe_arithmetic()
    for cell in plan.cells_of(paper):
        file = results / "histories" / f"{cell.path}.h5"
        history = History.load(file)
        about = history.about
        if not about.get("restored"):
            benchmark = results / "benchmarks" / f"{cell.path}.tsv"
            took = job_costs.measured(benchmark)
            cells[cell.path] = kept_cells.Kept(
                cell.path,
                kept_cells.arrays_sha256(file),
                kept_cells.settings_of(cell),
                about["code"],
                job_costs.seconds(benchmark),
                took.memory if took else 0.0,
                kept_cells.ends_of(history),
            )
        elif before is not None and cell.path in before.cells:
            if before.cells[cell.path].code == cell.code:
                cells[cell.path] = before.cells[cell.path]
                earlier = before.machine
        if cell.path in cells:
            versions |= about["versions"]
            commits.add(about["commit"])
    made = {problem for path in cells for problem in plan.cells[path].problems}
    times = {
        name: job_costs.measured(results / "benchmarks/problems" / paper / f"{name}.tsv")
        for name in sorted(made)
    }
    judged = paper in plan.judged
    behind = Evidence(planned, plan.claims_of(paper)).cells() if judged else {}
    return kept_cells.KeptRun(
        commit=", ".join(sorted(commits)),
        date=datetime.now(UTC).date().isoformat(),
        machine=joined(earlier, machine),
        versions=versions,
        seed=plan.config["seed"],
        probe=probe_speed(),
        problems={name: took.cpu or took.wall for name, took in times.items() if took},
        items={item: names for item, names in behind.items() if cells.keys() >= set(names)},
        cells=cells,
    )


def with_left_out(
    run: kept_cells.KeptRun, before: kept_cells.KeptRun, left_out: Collection[str]
) -> kept_cells.KeptRun:
    """Return a run's record, completed by earlier records of experiments that it left out."""
    others = {p: kept for p, kept in before.cells.items() if p.split("/")[1] in left_out}
    if not others:
        return run
    items = {
        item: [*run.items.get(item, []), *(name for name in names if name in others)]
        for item, names in (run.items | before.items).items()
    }
    return replace(
        run,
        commit=", ".join(sorted({run.commit, before.commit})),
        machine=joined(before.machine, run.machine),
        problems=before.problems | run.problems,
        items={item: names for item, names in items.items() if names},
        cells=others | run.cells,
    )


def keep(configfile: Path | None, kept: Path, papers: Collection[str]) -> None:
    """Write the records of the given papers, or of all papers that have been run."""
    plan = load_plan(read_configuration(configfile))
    done = Path(plan.config["paths"]["results"], "plans")
    for paper in papers or [name for name in plan.papers if (done / f"{name}.json").is_file()]:
        record = kept / f"{paper}.jsonl"
        before = kept_cells.read(record) if record.is_file() else None
        run = kept_run(plan, paper, before)
        if before is not None:
            run = with_left_out(run, before, plan.missing_of(paper))
        if run.cells:
            kept_cells.write(record, run)
        print(f"{paper}: {counted(len(run.cells), 'history', 'histories')} recorded")


def main() -> None:
    """Write the records that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("papers", nargs="*", metavar="PAPER", help="by default all that have run")
    parser.add_argument("--kept", type=Path, default=CHECKOUT / kept_cells.FOLDER)
    parser.add_argument("--configfile", type=Path, help="that the run was given, if any")
    chosen = parser.parse_args()
    try:
        keep(chosen.configfile, chosen.kept, chosen.papers)
    except FedcoreError as error:
        raise SystemExit(f"Error: {error}") from None


if __name__ == "__main__":
    main()

"""Keeps the histories of runs that take hours, and puts them back into a checkout.

A history is the record of a run. ``python tools/kept_histories.py keep PAPER …`` copies histories
from results/ to kept/histories/, without the arrays that no table reads. The times of their jobs
are copied to the same folder. ``restore``, which `make restore` calls, copies back the histories
whose settings equal those in the plan (all runs that the configuration asks for). Snakemake then
runs only what is missing, and makes no data for the restored histories. A kept history belongs to
the commit and the data that made it. ``restore`` compares neither with the present ones, so it
marks each copy as restored, and the web pages say which commits made the restored histories.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from fedcore.errors import FedcoreError
from fedcore.experiments.cell import Cell
from fedcore.files.strict_yaml import read_yaml
from fedcore.history import History
from fedcore.repro.plan import restored
from fedcore.repro.plan import up_to_date as settings
from fedcore.repro.plan.plan import load_plan
from fedcore.words import counted

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "kept" / "histories"
READ = ("newcomer_accuracy",)  # what tables read of what a run ends with
BESIDE = ("seconds", "benchmarks")  # tables of times, in folders of results/ and of kept/histories/


def keep(results: Path, kept: Path, papers: Iterable[str]) -> list[Path]:
    """Copy the histories of papers and the times of their jobs; return the paths of the copies.

    Restored histories are left out, because they are kept already.
    """
    made = []
    for paper in papers:
        for source in sorted((results / "histories" / paper).glob("*/*/*.h5")):
            cell = source.relative_to(results / "histories").with_suffix("")
            history = History.load(source)
            if history.about.get("restored"):
                continue
            history.final = {k: v for k, v in history.final.items() if k in READ}
            history.iterates, history.client_iterates = {}, {}
            history.reference.pop("leading_vectors", None)
            history.about["iterates"] = {"policy": "not kept"}
            target = kept / f"{cell}.h5"
            target.parent.mkdir(parents=True, exist_ok=True)
            history.save(target)
            for kind in BESIDE:
                times = results / kind / f"{cell}.tsv"
                if times.is_file():
                    shutil.copyfile(times, target.with_suffix(f".{kind}.tsv"))
            made.append(target)
    return made


def outdated(history: History, cell: Cell | None) -> str:
    """Return why a kept history does not fit the plan, or an empty text if it fits."""
    if cell is None:
        return "no cell of the configuration, or its data are not here"
    changed = settings.changed(cell, history)
    return f"the configuration has changed: {'; '.join(changed)}" if changed else ""


def restore(kept: Path, configfile: Path) -> list[str]:
    """Copy kept histories into the results of the checkout; return the paths of their cells.

    A cell is a planned run of a method. The function prints which histories are not copied, and
    why. It replaces no history that a run in this checkout has made.
    """
    plan = load_plan(read_yaml(configfile))
    results = Path(plan.config["paths"]["results"])
    cells: list[Cell] = []
    for file in sorted(kept.glob("*/*/*/*.h5")):
        name = str(file.relative_to(kept).with_suffix(""))
        cell = plan.cells.get(name)
        there = results / "histories" / f"{name}.h5"
        if there.exists() and not History.load(there).about.get("restored"):
            why = "there is one"
        else:
            why = outdated(History.load(file), cell)
        if why:
            print(f"{name}: {why}")
        elif cell is not None:
            _copy(kept, name, results)
            cells.append(cell)
    if not cells:
        return []
    restored.note(plan, cells)
    # Snakemake notes what the copies were made with, so that a later change makes them again.
    snakemake = [sys.executable, "-m", "snakemake", "--cores=1", f"--configfile={configfile}"]
    outputs = [f"{results}/histories/{cell.path}.h5" for cell in cells]
    call = [*snakemake, "--quiet", "all", "--touch", "--force", "--", *outputs]
    subprocess.run(call, check=True)
    return [cell.path for cell in cells]


def _copy(kept: Path, name: str, results: Path) -> None:
    """Copy a cell's history, marked as restored, and its tables of times into the results."""
    history = History.load(kept / f"{name}.h5")
    history.about["restored"] = True
    history.save(results / "histories" / f"{name}.h5")
    for kind in BESIDE:
        source, target = kept / f"{name}.{kind}.tsv", results / kind / f"{name}.tsv"
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def main() -> None:
    """Keep or restore histories, as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kept", type=Path, default=KEPT, help="the folder that keeps them")
    default = ROOT / "config" / "config.yaml"
    parser.add_argument("--configfile", type=Path, default=default, help="of the run")
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("keep", help="copy the histories of papers from results/")
    one.add_argument("papers", nargs="+", metavar="PAPER")
    verbs.add_parser("restore", help="copy those that fit the configuration into results/")
    chosen = parser.parse_args()
    try:
        if chosen.verb == "keep":
            results = Path(load_plan(read_yaml(chosen.configfile)).config["paths"]["results"])
            kept = keep(results, chosen.kept, chosen.papers)
            print(f"{counted(len(kept), 'history', 'histories')} kept")
        else:
            found = restore(chosen.kept, chosen.configfile)
            print(f"{counted(len(found), 'history', 'histories')} restored")
    except FedcoreError as error:
        raise SystemExit(str(error)) from None
    except subprocess.CalledProcessError:
        raise SystemExit("Snakemake has failed; it says why above") from None


if __name__ == "__main__":
    main()

"""Keeps the histories of runs that take hours, and puts them back into a checkout.

``python docs/kept_histories.py keep PAPER …`` copies histories from results/ into docs/histories/,
without the arrays that no table reads, and beside them the jobs' times. ``restore``, which is what
`make restore` runs, makes the problems of the kept histories and copies back those that the
checkout's own code and configuration would make again; Snakemake then runs only what is missing. So
a paper of many hours can be run in parts, on several machines. With ``--other-code``, which is
`make restore OTHER_CODE=1`, histories that other code has made come back, too; each says in
``about["code"]`` by which.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fedcore.config.strict_yaml import read_yaml
from fedcore.errors import FedcoreError
from fedcore.experiments.cell import checksum
from fedcore.experiments.plan import Cell, load_plan
from fedcore.experiments.reasons import settings_changed
from fedcore.history import History
from fedcore.problems import storage
from fedcore.reports.machine import machine
from fedcore.words import counted

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "docs" / "histories"
READ = ("newcomer_accuracy",)  # what tables read of what a run ends with
KERNEL = (
    "Kernels of OpenBLAS draw data that differ in their last digits. If the kept ones were made "
    "under another than here ({blas}), delete what was drawn now, in {folder}, and name the other, "
    "as in `OPENBLAS_CORETYPE=SkylakeX make restore OTHER_CODE=1`."
)
BESIDE = ("seconds", "benchmarks")  # tables of times, in folders of results/ and of docs/histories/


def keep(results: Path, kept: Path, papers: Iterable[str]) -> list[Path]:
    """Copy the histories of papers, and the times of their jobs; return the copies."""
    made = []
    for paper in papers:
        for source in sorted((results / "histories" / paper).glob("*/*/*.h5")):
            cell = source.relative_to(results / "histories").with_suffix("")
            history = History.load(source)
            history.final = {k: v for k, v in history.final.items() if k in READ}
            history.iterates = {}
            target = kept / f"{cell}.h5"
            target.parent.mkdir(parents=True, exist_ok=True)
            history.save(target)
            for kind in BESIDE:
                times = results / kind / f"{cell}.tsv"
                if times.is_file():
                    shutil.copyfile(times, target.with_suffix(f".{kind}.tsv"))
            made.append(target)
    return made


def outdated(history: History, cell: Cell | None, *, other_code: bool = False) -> str:
    """Return why a kept history is not what the cell would make; empty when it is."""
    if cell is None:
        return "no cell of the configuration, or its data are not here"
    if history.about["code"] != cell.code and not other_code:
        return "the code has changed"
    changed = settings_changed(cell, history)
    return f"the configuration has changed: {'; '.join(changed)}" if changed else ""


def restore(kept: Path, configfile: Path, cores: int, *, other_code: bool = False) -> list[str]:
    """Copy kept histories into the results of the checkout; return the restored cells.

    Says which histories stay out, and why. A history that is there is not replaced.
    """
    plan = load_plan(read_yaml(configfile))
    paths = plan.config["paths"]
    results, problems = Path(paths["results"]), Path(paths["clients"])
    cells = _fitting(kept, results, plan.cells, other_code=other_code)
    if not cells:
        return []
    files = {
        name: [f"{problems}/{cell.paper}/{problem}.h5" for problem in cell.problems]
        for name, cell in cells.items()
    }
    used = sorted({path for paths in files.values() for path in paths})
    print(
        f"{len(cells)} histories fit; their data are made first, in {len(used)} files", flush=True
    )
    snakemake = [sys.executable, "-m", "snakemake", f"--cores={cores}"]
    snakemake += [f"--configfile={configfile}", "--quiet", "all"]
    subprocess.run([*snakemake, "--", *used], check=True)
    sums = {path: checksum(storage.load_draws(path)) for path in used}
    restored = []
    drawn = False  # whether some are out whose data are drawn
    for name in cells:
        about = History.load(kept / f"{name}.h5").about
        if _sums_of_data(about) != [sums[path] for path in files[name]]:
            print(f"{name}: the data are others")
            drawn |= about["problem"]["status"] == "synthetic"
            continue
        _copy(kept, name, results)
        restored.append(name)
    if drawn:
        print(KERNEL.format(blas=machine()["BLAS"], folder=problems))
    if restored:
        # Snakemake notes what the copies were made with, so that a later change makes them again.
        outputs = [f"{results}/histories/{name}.h5" for name in restored]
        subprocess.run([*snakemake, "--touch", "--force", "--", *outputs], check=True)
    return restored


def _fitting(
    kept: Path, results: Path, planned: Mapping[str, Cell], *, other_code: bool
) -> dict[str, Cell]:
    """Return the cells of kept histories that may come back, by path; say why the others do not."""
    cells: dict[str, Cell] = {}
    for file in sorted(kept.glob("*/*/*/*.h5")):
        name = str(file.relative_to(kept).with_suffix(""))
        cell = planned.get(name)
        why = outdated(History.load(file), cell, other_code=other_code)
        if (results / "histories" / f"{name}.h5").exists():
            why = "there is one"
        if why:
            print(f"{name}: {why}")
        elif cell is not None:
            cells[name] = cell
    return cells


def _sums_of_data(about: Mapping[str, Any]) -> list[str]:
    """Return the checksums of the problems that a history has been made on."""
    return [about[key]["sha256"] for key in ("problem", "newcomers") if key in about]


def _copy(kept: Path, name: str, results: Path) -> None:
    """Copy a cell's history, and the tables beside it, each into its folder of the results."""
    sources = {"histories": kept / f"{name}.h5"}
    sources |= {kind: kept / f"{name}.{kind}.tsv" for kind in BESIDE}
    for kind, source in sources.items():
        if source.is_file():
            target = results / kind / f"{name}{source.suffix}"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def main() -> None:
    """Keep or restore, as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kept", type=Path, default=KEPT)
    parser.add_argument("--configfile", type=Path, default=ROOT / "config" / "config.yaml")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("keep").add_argument("papers", nargs="+")
    back = verbs.add_parser("restore")
    back.add_argument("--cores", type=int, default=2)
    back.add_argument("--other-code", action="store_true")
    chosen = parser.parse_args()
    try:
        if chosen.verb == "keep":
            results = Path(load_plan(read_yaml(chosen.configfile)).config["paths"]["results"])
            kept = keep(results, chosen.kept, chosen.papers)
            print(f"{counted(len(kept), 'history', 'histories')} kept")
        else:
            restored = restore(
                chosen.kept, chosen.configfile, chosen.cores, other_code=chosen.other_code
            )
            print(f"{counted(len(restored), 'history', 'histories')} restored")
    except FedcoreError as error:
        raise SystemExit(str(error)) from None
    except subprocess.CalledProcessError:
        raise SystemExit("Snakemake has failed; it says why above") from None


if __name__ == "__main__":
    main()

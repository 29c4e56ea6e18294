"""The command `certify`: rerun random cells (planned runs), and compare with earlier results."""

# ruff: noqa: D301  (click wants a real backspace before lines that it must not wrap)

from __future__ import annotations

import json
import os
import secrets
import shlex
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fedcore.cli import options
from fedcore.cli.output import say
from fedcore.errors import DataError, InputError, require_known
from fedcore.repro.commands.jobs import CONFIGFILE, planned
from fedcore.words import counted

if TYPE_CHECKING:
    from fedcore.repro.plan.plan import Plan

KERNEL = ("OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES")  # variables that choose a kernel
MACHINE = "machine.json"  # describes the machine of a folder, so that no other continues there


@click.command()
@click.argument("paper", required=False)
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    help="Time to plan for.",
)
@click.option("--item", metavar="ID", help="Rerun all cells of this item of PAPER, and no others.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the draw.  [random]")
@click.option("--cores", type=options.COUNT, default=os.cpu_count() or 1, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="Folder.  [certificate-SEED, or -ID]")
@click.option("--kept", type=click.Path(path_type=Path), help="Folder with the kept run's records.")
@CONFIGFILE
def certify(
    paper: str | None,
    minutes: float,
    item: str | None,
    seed: int | None,
    cores: int,
    out: Path | None,
    kept: Path | None,
    configfile: Path | None,
) -> None:
    """Rerun cells of the kept run on this machine, and certify which results agree.

    The kept run is an earlier run whose records are in the repository. A cell is an algorithm with
    fixed parameters on one data set. The cheapest cell of each method is chosen first. The other
    cells are drawn at random with --seed, cheap ones more often. The machine's speed, measured at
    the start, decides how many cells fit into --minutes. With --item, all cells that decide one
    item are chosen instead. An item is a printed result, such as a theorem or a figure's panel; its
    ID is in papers/PAPER/claims.yaml. Snakemake runs in the folder --out; if it is killed, a call
    with the same --seed or --item continues in this folder. The results must agree in every byte if
    the code, the BLAS kernel, the SIMD instructions, the system and all package versions are the
    same; otherwise only the last values of each cell's repeats are compared. The exit status is 1
    if a result disagrees or a cell could not be run.

    \b
    Examples:
      fedcore certify
      fedcore certify fedpower --minutes 30
      fedcore certify fedpower --item theorem1
      fedcore certify --minutes 600      # everything
      OPENBLAS_CORETYPE=Haswell fedcore certify --minutes 60
    """
    from fedcore.repro.commands.probe import probe_speed
    from fedcore.repro.config.papers import CHECKOUT
    from fedcore.repro.plan import draws, kept_cells
    from fedcore.repro.plan.machine import describe_arithmetic
    from fedcore.repro.site import certificate

    plan = planned(configfile)
    if paper is not None:
        require_known(paper, plan.papers, "PAPER: unknown paper", InputError)
    records = kept or CHECKOUT / kept_cells.FOLDER
    runs = kept_cells.read_all(records, [name for name in plan.papers if paper in (None, name)])
    if not runs:
        raise DataError(
            f"{records} has no record of these papers, so there is nothing to compare with: run "
            "`make reproduce` and then `python tools/kept_records.py`"
        )
    pool = draws.costs(plan, runs, probe_speed())
    if item is None:
        seed = secrets.randbelow(10**6) if seed is None else seed
        drawn = draws.draw(pool, minutes * 60 * cores, seed)
        how: dict[str, Any] = {"seed": seed, "minutes": minutes, "cores": cores}
        lacks = f"no cell fits into {minutes:g} minutes: give more --minutes"
    else:
        if paper is None:
            raise InputError("--item needs the item's paper: fedcore certify PAPER --item ID")
        require_known(item, runs[paper].items, "--item: there is no record of", InputError)
        drawn = [cell for cell in runs[paper].items[item] if cell in pool]
        how = {"item": item}
        lacks = f"--item: the settings of all cells of {item} have changed since the run"
    if not drawn:
        raise InputError(lacks)
    out = out or Path(f"certificate-{item or seed}")
    begin_folder(out, describe_arithmetic(), plan, runs)
    minutes_planned = draws.together(pool, drawn) / cores / 60
    given = how | {"kept": kept, "configfile": configfile}
    again = [f"--{name}={value}" for name, value in given.items() if value is not None]
    say(
        f"{counted(len(drawn), 'cell')} of {len(pool)}, by {again[0]}, for about "
        f"{max(minutes_planned, 0.1):.1f} minutes on {counted(cores, 'core')}, in {out}",
        err=True,
    )
    judged = [name for name in runs if name in plan.judged and not plan.config["quick"]]
    whole = [name for name in judged if {cell.path for cell in plan.cells_of(name)} <= {*drawn}]
    _make(out, drawn, whole, cores)
    kernel = [f"{name}={os.environ[name]}" for name in KERNEL if os.environ.get(name)]
    command = shlex.join([*kernel, "fedcore", "certify", *filter(None, [paper]), *again])
    found = certificate.compare(plan, runs, drawn, whole, out, records, command)
    files = certificate.write(found, out)
    say(found["summary"])
    say(f"Written: {', '.join(map(str, files))}")
    wrong = certificate.disagreements(found)
    if wrong:
        raise DataError(f"{counted(wrong, 'disagreement')}: {files[0]} names them")


def begin_folder(
    out: Path, machine: Mapping[str, str], plan: Plan, papers: Collection[str]
) -> None:
    """Write the configuration of a run into `out`; raise an error if another machine used `out`."""
    import yaml

    note = out / MACHINE
    if out.exists() and any(out.iterdir()):
        if not note.is_file():
            raise InputError(f"--out: {out} contains other files: name a new folder")
        if json.loads(note.read_text(encoding="utf-8")) != machine:
            raise InputError(f"--out: {out} is from another machine or kernel: name a new folder")
    config = dict(plan.config)
    overrides = plan.config["overrides"]
    config["overrides"] = {name: overrides[name] for name in papers if name in overrides}
    config["papers"] = [
        files.entry if "/" not in files.entry else str(files.folder.absolute())
        for files in (plan.files[name] for name in papers)
    ]
    raw = Path(plan.config["paths"]["raw"]).absolute()
    config["paths"] = {"raw": str(raw), "clients": "clients", "results": "results"}
    (out / "config").mkdir(parents=True, exist_ok=True)
    note.write_text(json.dumps(machine), encoding="utf-8")
    (out / "config/config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")


def _make(out: Path, cells: Collection[str], whole: Collection[str], cores: int) -> None:
    """Run Snakemake in `out` for the histories of `cells` and the verdicts on papers in `whole`."""
    from fedcore.repro.commands import workflow
    from fedcore.repro.config.papers import CHECKOUT

    targets = [f"results/histories/{cell}.h5" for cell in cells]
    targets += [f"results/verdicts/{paper}.tsv" for paper in whole]
    command = [f"--snakefile={CHECKOUT / 'Snakefile'}", f"--directory={out}", f"--cores={cores}"]
    command.append("--keep-going")
    if any((out / ".snakemake/locks").glob("*")):  # a killed call has left them
        workflow.run([*command, "--unlock"], stdout=sys.stderr)
    # A run that fails leaves cells out, which the certificate says.
    workflow.run([*command, "--", *targets], stdout=sys.stderr)

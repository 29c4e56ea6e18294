"""Commands for runs between organisations over NVIDIA FLARE: `deploy` and `join`."""

# ruff: noqa: D301  (click wants a real backspace before lines that it must not wrap)

from __future__ import annotations

import dataclasses
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fedcore.cli import blas, options
from fedcore.cli.asked import Asked
from fedcore.cli.output import as_json, emit
from fedcore.errors import InputError
from fedcore.files import HDF5_ENDINGS

if TYPE_CHECKING:
    from fedcore.algorithms import Algorithm
    from fedcore.history import History

NAME = re.compile("[A-Za-z][A-Za-z0-9_-]*")


@click.command()
@click.argument("algorithm", shell_complete=options.algorithm_names)
@click.option("--site", "sites", multiple=True, required=True, metavar="NAME=DATA",
              help="A site of FLARE, and where its data are there: a table, or problem.h5:2, the "
              "third client of a problem file.  Give one for each site.")  # fmt: skip
@options.setting
@options.components
@options.center
@click.option("--labels", metavar="COLUMN", help="Of tables: what the sites learn from.")
@click.option("--without", multiple=True, metavar="COLUMN", help="Of tables: leave it out.")
@options.seed
@options.repeats
@click.option("--metric", "measure", multiple=True, shell_complete=options.metric_names,
              help="What to record; with --evaluation, and only what needs no data of the sites.  "
              "[default: nothing]")  # fmt: skip
@click.option("--max-epsilon", type=float, help="Of every site: the most ε of all jobs together.  "
              "[default: no bound, and uploads without noise]")  # fmt: skip
@click.option("--max-delta", type=float, default=1e-5, show_default=True,
              help="Of every site: the largest δ at which ε may be stated.")  # fmt: skip
@click.option(
    "--evaluation",
    is_flag=True,
    help="Ask the sites for what is for evaluation, and let their files allow it.",
)
@click.option("--out", required=True, type=click.Path(file_okay=False), help="A new folder.")
@click.option("--simulate", is_flag=True,
              help="Run it at once in FLARE's simulator, a process for each site, and keep the "
              "history as history.h5 in the folder.")  # fmt: skip
@as_json
def deploy(
    algorithm: str,
    sites: tuple[str, ...],
    settings: tuple[str, ...],
    out: str,
    simulate: bool,
    max_epsilon: float | None,
    max_delta: float,
    as_json: bool,
    **asked: Any,
) -> None:
    """Write a job of NVIDIA FLARE that runs ALGORITHM between sites, and a file for each site.

    The job has no code: each site runs its own fedcore. A site's file says where its data are and
    what the site allows; its owner reads and edits it. docs/hospitals.md tells the whole way.

    \b
    Examples:
      fedcore deploy ssi --site north=/data/north.csv --site south=/data/south.csv -r 2 --out pca
      fedcore deploy noisy_power --site a=a.npz --site b=b.npz -r 2 --set epsilon=1 \\
        --max-epsilon 1 --out private --simulate
    """
    blas.limit(None)
    from fedcore import algorithms
    from fedcore.experiments import deployed, deployment, flare_kit

    chosen, data = algorithms.get(algorithm), _data_of(sites)
    task = _task(chosen, list(data), options.parameters(settings)[""], asked)
    if simulate:
        flare_kit.require()
    allowed = {
        "labels": asked["labels"], "without": list(asked["without"]), "max_epsilon": max_epsilon,
        "max_delta": max_delta, "evaluation": asked["evaluation"],
    }  # fmt: skip
    target = Path(out)
    folders = deployment.write(target, task, data, allowed)
    if not simulate:
        lines = [f"{target / deployment.JOB}: to submit with FLARE's console"]
        lines += [f"{where}: for {site}, which reads site.yaml" for site, where in folders.items()]
        emit(folders, lambda: "\n".join(lines), as_json)
        return
    found = flare_kit.simulate(target, target / "simulator")
    for name in (deployed.HISTORY, deployed.TRAFFIC):
        shutil.copyfile(found / name, target / name)
    _show(target / deployed.HISTORY, as_json)


@click.command()
@click.argument("kit", type=click.Path(file_okay=False))
@click.argument("folder", required=False, type=click.Path(file_okay=False))
def join(kit: str, folder: str | None) -> None:
    """Let FLARE's startup KIT on this machine run jobs of fedcore, and no code of others.

    FOLDER is the site's own, with site.yaml; without it the kit is the server's. Written are, in
    the kit's folder local, resources.json (classes that a job may name; no log is sent away),
    authorization.json (nobody may send code or shell commands) and fedcore.json (the folder).

    \b
    Example:
      fedcore join /opt/flare/north /srv/fedcore/north
    """
    from fedcore.experiments import flare_kit

    flare_kit.join(Path(kit), [Path(folder)] if folder else [])
    click.echo(f"{kit} runs jobs of fedcore" + (f", for {folder}" if folder else ", as the server"))


def _data_of(sites: Sequence[str]) -> dict[str, str]:
    """Return the data of each site; paths that are here become absolute ones."""
    from fedcore.datasets import own_files
    from fedcore.experiments import deployment

    found: dict[str, str] = {}
    for text in sites:
        name, equals, data = text.partition("=")
        if not (equals and data and NAME.fullmatch(name)) or name == "server":
            raise click.BadParameter(
                f"'{text}' is not NAME=DATA, NAME of letters, digits, - and _", param_hint="--site"
            )
        if name in found:
            raise InputError(f"--site {name} is given twice: name each site once")
        path, number = deployment.split(data)
        problem = Path(path).suffix in HDF5_ENDINGS
        if not problem and (number is not None or not own_files.readable(path)):
            known = ", ".join([*sorted(own_files.READERS), *HDF5_ENDINGS])
            raise InputError(f"--site {text}: cannot tell the format of {data}: take {known}")
        if Path(path).exists():
            data = str(Path(path).resolve()) + ("" if number is None else f":{number}")
        found[name] = data
    return found


def _task(
    chosen: Algorithm, sites: list[str], given: Mapping[str, Any], asked: Mapping[str, Any]
) -> Any:
    """Return what the server runs, checked as far as can be without the data."""
    from fedcore import metrics
    from fedcore.experiments.deployment import Task

    if chosen.task.packages:
        raise InputError(f"{chosen.name} learns networks, which are not run over FLARE yet")
    if chosen.labelled and asked["labels"] is None:
        raise InputError(f"{chosen.name} learns from labels: name their column with --labels")
    for name in asked["measure"]:
        metrics.get(name)
    unset = dict.fromkeys(field.name for field in dataclasses.fields(Asked))
    params = Asked(**{**unset, "components": asked["components"]}).params(chosen, given)
    return Task(
        chosen.name, params, sites, asked["seed"], asked["repeats"], list(asked["measure"]),
        asked["center"], asked["evaluation"],
    )  # fmt: skip


def _show(path: Path, as_json: bool) -> None:
    from fedcore.history import History
    from fedcore.reports.endings import ending
    from fedcore.reports.terminal import outcome

    history: History = History.load(path)
    emit(ending(history), lambda: outcome(history), as_json)

"""The command line: look up, fetch, run, show.

Results go to standard output; progress and errors to standard error. A user's error ends in one
sentence and status 1, or status 2 for a misspelt command or option. Each command imports what it
needs, so that ``--help`` answers at once.
"""

# ruff: noqa: D301  (click wants a real backspace before lines that it must not wrap)

from __future__ import annotations

import dataclasses
import errno
import functools
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from fedcore import __version__
from fedcore.errors import ConfigError, DataError, FedcoreError, InputError, nearest

RAW = "data/raw"
DEFAULT_CLIENTS = 10
UNCHANGED = (
    "parameters, repeats, seed and code are those of the history; its data, and what else is "
    "recorded, were not looked at"
)


class Sentences(click.Group):
    """Group whose commands report a user's error in one sentence, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; turn errors that a user can cause into ``Error: …`` and status 1."""
        try:
            return super().invoke(ctx)
        except FedcoreError as error:
            raise click.ClickException(" ".join(str(error).split())) from error
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            _drop_unwritten_output()
            where = "the output cannot be written" if error.filename is None else error.filename
            raise click.ClickException(f"{where}: {error.strerror or error}") from error


def _drop_unwritten_output() -> None:
    """Drop output that standard output cannot take; Python would fail on it again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=Sentences, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="fedcore")
def main() -> None:
    """Federated PCA and factorisation under one ledger.

    \b
    Try it without any data:
      fedcore run block_krylov w8a --components 5 --surrogate --set tol=1e-8
    """


@main.command()
@click.argument("name", required=False)
def algorithms(name: str | None) -> None:
    """List the algorithms, or describe one and its parameters.

    \b
    Example:
      fedcore algorithms block_krylov
    """
    from fedcore.algorithms import get, names
    from fedcore.parts.params import describe
    from fedcore.parts.residuals import with_tolerance
    from fedcore.reports.terminal import columns

    if name is None:
        click.echo(columns([_algorithm_row(known) for known in names()]))
        return
    algorithm = get(name)
    click.echo(f"{name}, of the paper '{algorithm.paper}'\n\n{(algorithm.module.__doc__ or '')}")
    defaults = {k: f"default {v:g}" for k, v in with_tolerance(algorithm, {}).items()}  # of a run
    text = click.HelpFormatter()
    with text.section("Parameters, with --set NAME=VALUE (n_components is --components)"):
        text.write_dl(
            (name, f"{sentence} [{kind}; {defaults.get(name, default)}]".lstrip())
            for name, sentence, kind, default in describe(algorithm.module.Params)
            if name != "start"
        )
    click.echo(text.getvalue(), nl=False)


@main.command()
@click.option("--raw", default=RAW, show_default=True, help="Folder of the raw data files.")
def datasets(raw: str) -> None:
    """List the data sets: which can be fetched, and what must be provided by hand.

    \b
    Example:
      fedcore datasets
    """
    from fedcore import datasets as registry
    from fedcore.reports.terminal import columns

    names = registry.names()
    reasons = [registry.missing(name, raw) for name in names]
    rows = [
        (name, "to be provided" if reason else "obtainable", registry.describe(name)["title"])
        for name, reason in zip(names, reasons, strict=True)
    ]
    click.echo(columns(rows))
    for reason in filter(None, reasons):
        click.echo(f"\n{reason}")


@main.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("--raw", default=RAW, show_default=True, help="Folder of the raw data files.")
@click.option("--mirror", help="Folder with one subfolder per data set.  [default: FEDCORE_MIRROR]")
def fetch(names: tuple[str, ...], raw: str, mirror: str | None) -> None:
    """Fetch data sets and check them against the registry.

    \b
    Example:
      fedcore fetch mnist w8a
    """
    from fedcore import datasets as registry

    for name in names:
        registry.describe(name)  # a misspelt name is refused before anything is fetched
    for name in names:
        for path in registry.fetch(name, raw, mirror=mirror):
            click.echo(path)


@main.command()
@click.argument("algorithm")
@click.argument("dataset")
@click.option(
    "--components", "-r", type=click.IntRange(min=1), help="Rank; for what learns a subspace."
)
@click.option(
    "--clients",
    type=click.IntRange(min=1),
    help=f"Number of clients.  [default: {DEFAULT_CLIENTS}, unless the partition says]",
)
@click.option(
    "--partition",
    metavar="by=KIND[,KEY=VALUE...]",
    help="How samples are dealt: by=label, by=even, by=dirichlet,alpha=0.5, …  "
    "[default: by=shuffled]",
)
@click.option(
    "--held-out",
    metavar="test|SHARE",
    help="Samples to measure networks on: the data set's own, or a share of each client's.  "
    "[default: 0.2]",
)
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Parameter of the algorithm."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--repeats", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--surrogate", is_flag=True, help="Take the data set's offline stand-in.")
@click.option(
    "--metric", "measure", multiple=True,
    help="What to record; may be given several times.  [default: objective, subspace_distance; of "
    "networks test_accuracy]",
)  # fmt: skip
@click.option(
    "--simulate", is_flag=True, help="Draw privacy noise from the seed: nothing is guaranteed."
)
@click.option("--raw", default=RAW, show_default=True, help="Folder of the raw data files.")
@click.option("--out", type=click.Path(dir_okay=False), help="Keep the history in this HDF5 file.")
def run(
    algorithm: str,
    dataset: str,
    components: int | None,
    clients: int | None,
    partition: str | None,
    held_out: str | None,
    settings: tuple[str, ...],
    seed: int,
    repeats: int,
    surrogate: bool,
    measure: tuple[str, ...],
    simulate: bool,
    raw: str,
    out: str | None,
) -> None:
    """Run ALGORITHM on DATASET and print where it ended and what it cost.

    Two algorithms with the same data set, partition and seed get the same clients and the same
    random streams. The same command writes the same bytes to --out if CPU type, BLAS, its number
    of threads and library versions are the same. A private algorithm needs --simulate for this, as
    its noise comes from the operating system otherwise. Files of the data set that are not in --raw
    are fetched first, as by fedcore fetch.

    \b
    Examples:
      fedcore run block_krylov w8a -r 5 --surrogate --set tol=1e-8 --repeats 5
      fedcore run ssi mnist -r 20 --set tol=1e-6 --partition by=label --out mnist.h5
      fedcore run fedrep mnist --surrogate --set model=femnist_mlp --set rounds=5
    """
    from fedcore import algorithms as registry
    from fedcore import datasets, metrics
    from fedcore.experiments import build
    from fedcore.experiments.cell import run_repeats
    from fedcore.experiments.plan import Cell
    from fedcore.parts import residuals
    from fedcore.reports.terminal import outcome
    from fedcore.validation import require_flag

    chosen = registry.get(algorithm)
    params = _parameters(settings)
    if components is not None:
        params["n_components"] = components
    elif chosen.takes("n_components"):
        raise click.UsageError("Missing option '--components' / '-r'.")
    params = residuals.with_tolerance(chosen, params)
    chosen.params({k: 1.0 if v == "reference" else v for k, v in params.items()})
    for field in dataclasses.fields(chosen.module.Params):  # a plug-in's own may check nothing
        if isinstance(field.default, bool) and field.name in params:
            require_flag(**{field.name: params[field.name]})
    measure = measure or chosen.task.printed
    for name in measure:
        metrics.get(name)
    parts = _partition(partition, clients)
    spec = {"dataset": dataset, "partition": parts, **chosen.task.problem}
    if held_out is not None:
        if "held_out" not in spec:
            raise InputError(f"{algorithm} learns no classifiers to measure: drop --held-out")
        spec["held_out"] = _share(held_out)
    if dataset not in datasets.names():
        raise ConfigError(
            f"unknown data set '{dataset}': {nearest(dataset, datasets.names())}; "
            "own data go through Python: fedcore.run"
        )
    if not surrogate:
        try:
            datasets.fetch(dataset, raw)  # what is there is only checked
        except DataError as error:
            if datasets.missing(dataset, raw, surrogate=True):
                raise
            raise DataError(f"{error}; or try it on a stand-in with --surrogate") from error
    problem = build.build(dataset, spec, raw=raw, seed=seed, surrogate=surrogate)

    name = " ".join([dataset, *(f"{key}={value}" for key, value in parts.items())])
    cell = Cell(
        "command line", "run", algorithm, name, dataset,
        params, repeats, list(measure), "last", seed,
    )  # fmt: skip
    history = run_repeats(
        cell.spec(), [problem],
        code=cell.code, progress=functools.partial(_progress, algorithm), simulate=simulate,
    )  # fmt: skip
    if out:
        history.save(out)
    click.echo(outcome(history))


@main.command()
@click.argument("file", type=click.Path())
def show(file: str) -> None:
    """Show where a history FILE comes from, what it holds and how it ended.

    \b
    Example:
      fedcore show results/histories/factorization/fig3/power_gd/w8a-alpha0-gd.h5
    """
    from fedcore.history import History
    from fedcore.reports.terminal import contents, outcome

    history = History.load(file)
    click.echo(f"{outcome(history)}\n\n{contents(history)}")


@main.command()
@click.argument("folder", type=click.Path(), required=False)
@click.option("--combine", is_flag=True, help="First merge FOLDER/verdicts/*.tsv anew.")
@click.option("--paper", metavar="PAPER", help="Only items of this paper.")
@click.option("--verdict", metavar="VERDICT", help="Only items with this verdict.")
@click.option("--show", "shown", metavar="ID", help="Print all that is known of one item.")
@click.option(
    "--strict",
    type=click.Path(),
    metavar="KEPT",
    help="Status 1 if a verdict is worse than in this table, or folder of tables.",
)
def verdicts(
    folder: str | None,
    combine: bool,
    paper: str | None,
    verdict: str | None,
    shown: str | None,
    strict: str | None,
) -> None:
    """Print what came out of each item that a paper prints, from the results in FOLDER.

    FOLDER is by default results (from make reproduce), or else results/quick (from make
    quickstart).

    \b
    Examples:
      fedcore verdicts --paper faps --verdict deviates
      fedcore verdicts --show faps/table4-ssi-iterations
      fedcore verdicts --strict docs/verdicts
    """
    from fedcore.errors import require_known
    from fedcore.reports import verdict_pages as pages
    from fedcore.reports.terminal import columns

    folder = _results() if folder is None else folder
    table = Path(folder) / "verdicts.tsv"
    found = pages.combine(table.with_suffix(""), table) if combine else pages.read(table)
    if strict is not None and (worse := pages.worse(found, pages.read_all(strict))):
        click.echo("\n".join(worse))
        raise DataError(f"verdicts worse than in {strict}: {len(worse)}")
    for name, kind in ((paper, "paper"), (verdict, "verdict")):
        if name is not None:
            require_known(name, {getattr(v, kind) for v in found}, f"no such {kind}", InputError)
            found = [v for v in found if getattr(v, kind) == name]
    if shown is not None:
        names = {f"{v.paper}/{v.id}": v for v in found}
        fitting = [v for name, v in names.items() if shown in (name, v.id)]
        if not fitting:
            require_known(shown, names, "there is no item", InputError)
        click.echo("\n\n".join(map(pages.shown, fitting)))
        return
    rows = [("paper", "item", "printed", "measured", "verdict")]
    rows += [
        (v.paper, v.id, _short(v.printed), _short(v.measured) or "–", v.verdict) for v in found
    ]
    click.echo(f"{columns(rows)}\n\n{pages.summary(found)}")


@main.command()
@click.argument("file", type=click.Path())
@click.option("--configfile", metavar="FILE", help="As for Snakemake.  [default: that of FILE]")
def why(file: str, configfile: str | None) -> None:
    """Say why Snakemake would make a history again: the function or parameter that has changed.

    \b
    Example:
      fedcore why results/quick/histories/faps/table4/ssi/uneven-default.h5
    """
    from fedcore.config.short_forms import merge
    from fedcore.config.strict_yaml import read_yaml
    from fedcore.errors import require_known
    from fedcore.experiments.plan import load_plan
    from fedcore.experiments.reasons import reasons

    quick = Path("config/quick.yaml")
    settings = read_yaml(Path("config/config.yaml"))
    if configfile is None and quick.is_file():
        folder = read_yaml(quick)["paths"]["results"]
        configfile = str(quick) if Path(file).is_relative_to(folder) else None
    plan = load_plan(merge(settings, read_yaml(Path(configfile))) if configfile else settings)
    results = Path(plan.config["paths"]["results"])
    path = Path(file)
    if not path.is_relative_to(results / "histories") or path.suffix != ".h5":
        raise InputError(f"{file} is no history of a cell: those are {results}/histories/**/*.h5")
    name = path.relative_to(results / "histories").with_suffix("").as_posix()
    require_known(name, plan.cells, f"{file} is of no cell that is planned", InputError)
    found = reasons(plan.cells[name], results)
    click.echo("\n".join(found) or UNCHANGED)


def _short(text: str, width: int = 40) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _results() -> str:
    """Return the folder with verdicts: of `make reproduce`, or else of `make quickstart`."""
    full, quick = "results", "results/quick"
    for folder in (full, quick):
        if any((Path(folder) / name).exists() for name in ("verdicts.tsv", "verdicts")):
            if folder == quick:
                click.echo(f"verdicts of the quick run, in {quick}:", err=True)
            return folder
    raise InputError(
        f"there are no verdicts in {full} or {quick}: run make quickstart or make reproduce, "
        "or name the folder of the results"
    )


def _algorithm_row(name: str) -> tuple[str, ...]:
    from fedcore.algorithms import get

    try:
        algorithm = get(name)
        return name, algorithm.paper, algorithm.title
    except FedcoreError as error:  # a missing extra, or another package's error
        return name, "broken", " ".join(str(error).split())


def _parameters(settings: Sequence[str]) -> dict[str, Any]:
    """Read the NAME=VALUE of --set."""
    values: dict[str, Any] = {}
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"'{text}' is not NAME=VALUE", param_hint="--set")
        if name == "n_components":
            raise click.BadParameter("give n_components as --components", param_hint="--set")
        if name == "start":
            raise InputError("--set takes no starting basis: give it to fedcore.run in Python")
        values[name] = _value(value)
    return values


def _partition(text: str | None, clients: int | None) -> dict[str, Any]:
    """Read ``by=KIND,KEY=VALUE``, split at commas outside brackets, and add the client count."""
    parts: dict[str, Any] = {}
    for pair in re.split(r",(?![^\[]*\])", text) if text else []:
        key, equals, value = pair.strip().partition("=")
        if not equals or key in parts:
            wrong = "is not KEY=VALUE" if not equals else f"gives the key {key} a second time"
            raise click.BadParameter(f"'{pair}' {wrong}", param_hint="--partition")
        parts[key] = _value(value)
    if clients is not None and "clients" in parts:
        raise click.BadParameter(
            "the number of clients is given twice: drop it here or drop --clients",
            param_hint="--partition",
        )
    if clients is not None or not parts:
        parts["clients"] = DEFAULT_CLIENTS if clients is None else clients
    return {"by": "shuffled"} | parts


def _share(text: str) -> Any:
    """Read the value of --held-out."""
    value = _value(text)
    if value != "test" and not (isinstance(value, float) and 0 < value < 1):
        raise click.BadParameter(
            f"'{text}' is not test or a share below 1", param_hint="--held-out"
        )
    return value


def _value(text: str) -> Any:
    """Read a value as YAML, and 1e-6, which YAML takes for a string, as a number."""
    from fedcore.config.strict_yaml import parse_yaml

    try:
        value = parse_yaml(text, "a value")
    except ConfigError:
        return text
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _progress(description: str, repeats: Any) -> Any:
    """Progress bar over the repeats, on standard error when that is a terminal."""
    from tqdm import tqdm

    return tqdm(repeats, desc=description, unit="repeat", disable=None)

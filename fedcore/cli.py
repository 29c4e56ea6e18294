"""The command line: look up, fetch, run, show.

Results go to standard output; progress and errors to standard error. What a user can get wrong ends
in one sentence and status 1 (2 when the command itself was misspelt). Everything but click is
imported by the command that needs it, so that ``--help`` is there at once.
"""

# ruff: noqa: D301  (click wants a real backspace before lines that it must not wrap)

from __future__ import annotations

import errno
import functools
import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fedcore import __version__
from fedcore.errors import ConfigError, DataError, FedcoreError, InputError

if TYPE_CHECKING:
    from fedcore.history import History

RAW = "data/raw"
DEFAULT_CLIENTS = 10


class Sentences(click.Group):
    """Group whose commands end a user's error in one sentence, without a traceback."""

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
    """Let go of what standard output cannot take; Python would try again, and fail, at its end."""
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

    if name is None:
        click.echo(_columns([_algorithm_row(known) for known in names()]))
        return
    algorithm = get(name)
    click.echo(f"{name}, of the paper '{algorithm.paper}'\n\n{(algorithm.module.__doc__ or '')}")
    text = click.HelpFormatter()
    with text.section("Parameters, with --set NAME=VALUE (n_components is --components)"):
        text.write_dl(
            (known.name, f"{known.sentence} [{known.kind}; {known.default}]".lstrip())
            for known in describe(algorithm.module.Params)
            if known.name != "start"
        )
    click.echo(text.getvalue(), nl=False)


@main.command()
@click.option("--raw", default=RAW, show_default=True, help="Folder of the raw data files.")
def datasets(raw: str) -> None:
    """List the data sets: obtainable, or what has to be provided by hand.

    \b
    Example:
      fedcore datasets
    """
    from fedcore import datasets as registry

    names = registry.names()
    reasons = [registry.missing(name, raw) for name in names]
    rows = [
        (name, "to be provided" if reason else "obtainable", registry.describe(name)["title"])
        for name, reason in zip(names, reasons, strict=True)
    ]
    click.echo(_columns(rows))
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
@click.option("--components", "-r", type=click.IntRange(min=1), required=True, help="Rank.")
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
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Parameter of the algorithm."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--repeats", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--surrogate", is_flag=True, help="Take the data set's offline stand-in.")
@click.option(
    "--metric", "measure", multiple=True, default=("objective", "subspace_distance"),
    show_default=True, help="What to record; may be given several times.",
)  # fmt: skip
@click.option(
    "--simulate", is_flag=True, help="Draw privacy noise from the seed: nothing is guaranteed."
)
@click.option("--raw", default=RAW, show_default=True, help="Folder of the raw data files.")
@click.option("--out", type=click.Path(dir_okay=False), help="Keep the history in this HDF5 file.")
def run(
    algorithm: str,
    dataset: str,
    components: int,
    clients: int | None,
    partition: str | None,
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
    random streams. The same command gives the same bytes in --out where CPU type, BLAS, its number
    of threads and library versions are the same; with a private algorithm only if --simulate is
    given: else its noise is the operating system's. Files of the data set that are not in --raw are
    fetched first, as by fedcore fetch.

    \b
    Examples:
      fedcore run block_krylov w8a -r 5 --surrogate --set tol=1e-8 --repeats 5
      fedcore run ssi mnist -r 20 --set tol=1e-6 --partition by=label --out mnist.h5
    """
    from fedcore import algorithms as registry
    from fedcore import datasets, metrics
    from fedcore.experiments import build
    from fedcore.experiments.cell import run_cell
    from fedcore.experiments.plan import Cell
    from fedcore.parts import residuals
    from fedcore.problems import storage
    from fedcore.validation import require_rank

    chosen = registry.get(algorithm)
    params = _parameters(settings) | {"n_components": components}
    params = residuals.with_tolerance(chosen, params)
    chosen.params({k: 1.0 if v == "reference" else v for k, v in params.items()})
    for name in measure:
        metrics.get(name)
    parts = _partition(partition, clients)
    spec = {"dataset": dataset, "partition": parts}
    try:
        datasets.describe(dataset)
    except ConfigError as error:
        raise ConfigError(f"{error}; own data go through Python: fedcore.run") from error
    if not surrogate:
        try:
            datasets.fetch(dataset, raw)  # what is there is only checked
        except DataError as error:
            raise DataError(f"{error}; or try it on a stand-in with --surrogate") from error
    problem = build.build(dataset, spec, raw=raw, seed=seed, surrogate=surrogate)
    require_rank(components, problem.n_samples, problem.n_features)

    name = " ".join([dataset, *(f"{key}={value}" for key, value in parts.items())])
    cell = Cell(
        "command line", "run", algorithm, name, dataset,
        params, repeats, list(measure), "last", seed,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="fedcore-") as folder:
        storage.save(problem, f"{folder}/problem.h5")
        history = run_cell(
            cell.spec(), f"{folder}/problem.h5", out or f"{folder}/history.h5",
            code=cell.code, progress=functools.partial(_progress, algorithm), simulate=simulate,
        )  # fmt: skip
    click.echo(_outcome(history))


@main.command()
@click.argument("file", type=click.Path())
def show(file: str) -> None:
    """Show where a history FILE comes from, what it holds and how it ended.

    \b
    Example:
      fedcore show results/histories/factorization/fig3/power_gd/w8a-alpha0-gd.h5
    """
    from fedcore.history import History

    if not Path(file).exists():
        raise InputError(f"there is no file {file}")
    history = History.load(file)
    click.echo(_outcome(history))
    about = history.about
    rows = [
        ("cell", "/".join(str(about.get(k, "?")) for k in ("paper", "experiment", "name"))),
        ("parameters", _words(about.get("params", {}))),
        ("data sha256", _exact(history, about.get("problem", {}).get("sha256", "not kept"))),
        ("seed", _words(about.get("seed", {}))),
        ("code", about.get("code") or "?"),
        ("versions", _words(about.get("versions", {}))),
    ]
    click.echo(f"\n{_columns(rows)}\n")
    shape = " x ".join(map(str, history["iteration"].shape))
    click.echo(f"columns, each repeats x records = {shape}")
    described = [(name, *history.units[name], _mark(history, name)) for name in history.columns]
    click.echo(_columns([(f"  {name}", *words) for name, *words in sorted(described)]))
    for group in ("final", "iterates", "reference", "twin"):
        for name, array in sorted(getattr(history, group).items()):
            size = " x ".join(map(str, array.shape)) or "scalar"
            click.echo(f"  {group}/{name}  {_exact(history, size, group in ('reference', 'twin'))}")


@main.command()
@click.argument("folder", type=click.Path(), required=False)
@click.option("--combine", is_flag=True, help="First merge FOLDER/verdicts/*.tsv anew.")
@click.option("--why", is_flag=True, help="Print the reason below each verdict.")
def verdicts(folder: str | None, combine: bool, why: bool) -> None:
    """Print which published values came out, from the results in FOLDER.

    The default is results, of make reproduce, or else results/quick, of make quickstart.

    \b
    Example:
      fedcore verdicts results/quick --why
    """
    from fedcore.reports import verdict_pages as pages

    folder = _results() if folder is None else folder
    table = Path(folder) / "verdicts.tsv"
    found = pages.combine(table.with_suffix(""), table) if combine else pages.read(table)
    rows = [("paper", "value", "printed", "measured", "verdict")]
    rows += [(v.paper, v.id, v.printed, v.measured or "–", v.verdict) for v in found]
    head, *lines = _columns(rows).splitlines()
    click.echo(head)
    for line, v in zip(lines, found, strict=True):
        click.echo(f"{line}\n    {v.reason}" if why else line)
    click.echo(f"\n{pages.summary(found)}")


def _results() -> str:
    """Folder with verdicts: that of `make reproduce`, or else of `make quickstart`."""
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
    except FedcoreError as error:  # an optional extra, or somebody else's broken package
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
            raise InputError("a starting basis cannot be given on the command line")
        values[name] = _value(value)
    return values


def _partition(text: str | None, clients: int | None) -> dict[str, Any]:
    """Read ``by=KIND,KEY=VALUE`` (commas inside brackets do not part) and join the client count."""
    parts: dict[str, Any] = {}
    for pair in re.split(r",(?![^\[]*\])", text) if text else []:
        key, equals, value = pair.strip().partition("=")
        if not equals or key in parts:
            raise click.BadParameter(f"'{pair}' is not a new KEY=VALUE", param_hint="--partition")
        parts[key] = _value(value)
    if clients is not None and "clients" in parts:
        raise click.BadParameter("number of clients given twice", param_hint="--partition")
    if clients is not None or not parts:
        parts["clients"] = DEFAULT_CLIENTS if clients is None else clients
    return {"by": "shuffled"} | parts


def _value(text: str) -> Any:
    """Read a value as YAML does, and 1e-6 as the number that it is."""
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


def _outcome(history: History) -> str:
    """What was run on what, the last value of every metric, and the ledger."""
    import numpy as np

    from fedcore.recorder import COLUMNS
    from fedcore.reports.tables import show

    problem = history.about.get("problem", {})
    several = history.repeats > 1
    head = (
        f"{history.about.get('algorithm', '?')} on {problem.get('name', '?')} "
        f"[{problem.get('status', 'unknown')} data]: {problem.get('n_clients', '?')} clients, "
        f"{problem.get('n_samples', '?')} samples, {problem.get('n_features', '?')} features; "
        f"{history.repeats} repeat{'s' if several else ''}"
    )
    lines = [head, *([problem["note"]] if problem.get("note") else []), ""]

    rows = [("metric", "median" if several else "last", *(("min", "max") if several else ()), "")]
    for name in sorted(set(history.columns) - set(COLUMNS)):
        last = history.last(name)
        values = (np.median(last), last.min(), last.max()) if several else (last[0],)
        units = history.units.get(name, ("", ""))[0]
        words = ["" if units == "1" else units, _mark(history, name)]
        rows.append((name, *(show(float(v)) for v in values), ", ".join(filter(None, words))))
    rows[1:], remarks = _beside_bounds(history, rows[1:])
    if len(rows) > 1:
        lines += [_columns(rows, right=range(1, len(rows[0]) - 1)), *remarks, ""]

    total = {n: float(np.median(history.last(n))) for n in COLUMNS if n in history.columns}
    crossed = [
        (f"  {way}", f"{total[f'scalars_{way}']:,.0f}", "scalars", _bytes(total[f"bytes_{way}"]))
        for way in ("up", "down")
    ]
    rows = [("  rounds", f"{total['round']:,.0f}", "", ""), *crossed]
    if "epsilon" in total:
        privacy = history.about["privacy"]
        terms = f"at delta = {privacy['delta']:g}, neighbours = {privacy['neighbours']}"
        rows.append(("  epsilon", show(total["epsilon"]), terms, ""))
    lines.append(f"ledger, all clients together{', median of the repeats' if several else ''}")
    about = history.about
    notes = [about.get("privacy", {}).get("noise"), about.get("tuning", {}).get("note")]
    if "epsilon" in total and several:
        notes.append("epsilon is that of one repeat: repeats on the same data add up")
    return "\n".join([*lines, _columns(rows, right=(1, 3)), *(f"  {n}" for n in notes if n)])


def _mark(history: History, name: str) -> str:
    """Say of a private run's column that it was not released."""
    from fedcore.recorder import NOT_RELEASED

    return "" if history.released is None or name in history.released else NOT_RELEASED


def _exact(history: History, text: str, exact: bool = True) -> str:
    """Mark a text about something exact, where the run was private."""
    from fedcore.recorder import NOT_RELEASED

    return text if history.released is None or not exact else f"{text}  {NOT_RELEASED}"


def _beside_bounds(
    history: History, rows: list[tuple[str, ...]]
) -> tuple[list[tuple[str, ...]], list[str]]:
    """Put the best possible value and that of "all zero" below the objective; say what is amiss."""
    import numpy as np

    from fedcore.reports.tables import show

    remarks = []
    if "converged" in history.final:
        met = int(np.sum(history.final["converged"]))
        which = "converged" if met == history.repeats else "NOT converged: allow more rounds"
        remarks.append(f"{which} ({met} of {history.repeats} within the tolerance)")
    squares = np.atleast_2d(history.reference.get("singular_values", np.empty(0))) ** 2
    rank = history.about.get("params", {}).get("n_components")
    if not squares.size or not isinstance(rank, int):
        return rows, remarks
    bounds = {"  at best": squares[:, rank:].sum(axis=1) / 2, "  all zero": squares.sum(axis=1) / 2}
    below = []
    for row in rows:
        below.append(row)
        if row[0] in ("objective", "exact_objective"):
            for name, bound in bounds.items():
                several = (np.median(bound), bound.min(), bound.max())
                values = several[: 3 if len(row) == 5 else 1]
                below.append((name, *(show(float(value)) for value in values), row[-1]))
            if np.median(history.last(row[0])) > np.median(bounds["  all zero"]):
                remarks.append(f"{row[0]} is above that of a model that is zero everywhere")
    return below, remarks


def _bytes(size: float) -> str:
    """Return a size in decimal units, such as ``'1.2 MB'``."""
    units = ["B", "kB", "MB", "GB", "TB", "PB"]
    while abs(size) >= 999.5 and len(units) > 1:
        size, units = size / 1000.0, units[1:]
    return f"{size:.3g} {units[0]}"


def _words(mapping: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in mapping.items()) or "–"


def _columns(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Align cells in columns two blanks apart; the columns numbered in `right` to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join(lines)

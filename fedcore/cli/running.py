"""The commands `run` and `compare`, which run algorithms."""

# ruff: noqa: D301  (click wants a real backspace before lines that it must not wrap)

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fedcore.cli import blas, options
from fedcore.cli.output import as_json, emit, say
from fedcore.cli.run_options import RunOptions, shared
from fedcore.errors import Advice, InputError, require_known
from fedcore.federation.engines.mpi_link import started_as

if TYPE_CHECKING:
    from fedcore.algorithms import Algorithm
    from fedcore.federation.engines.mpi import Ranks

ENGINES = ("in-process", "plain", "mpi")

engine = click.option(
    "--engine", type=click.Choice(ENGINES), default="in-process", show_default=True,
    help="in-process: run in this process, many clients in one step where that is faster; "
    "plain: run one client after another; mpi: run on the ranks that mpiexec has started.",
)  # fmt: skip


@click.command()
@click.argument("algorithm")
@click.argument("data", metavar="DATA...", nargs=-1, required=True)
@shared
@click.option("--out", type=click.Path(dir_okay=False), help="Write the history to this HDF5 file.")
@options.force
@engine
@as_json
def run(
    algorithm: str,
    data: tuple[str, ...],
    settings: tuple[str, ...],
    out: str | None,
    force: bool,
    engine: str,
    as_json: bool,
    blas_threads: int | None,
    **asked: Any,
) -> None:
    """Run ALGORITHM on DATA and print its result and its communication cost.

    DATA is a data set of `fedcore list datasets`, or your own CSV, NPZ, LIBSVM or Parquet files.
    Each file is one client. With --by COLUMN, each value in that column is one client. Columns are
    matched by their names. LIBSVM files (.svm, .libsvm) and NPZ files of scipy.sparse.save_npz stay
    sparse. The labels of a LIBSVM file form a column named 'label'. DATA can also be one problem
    file (.h5), which contains all clients; the workflow writes such files to data/clients/.

    Two algorithms with the same data and seed get the same clients and the same random streams. The
    same command writes the same bytes to --out if CPU type, BLAS, number of threads and library
    versions are the same. For a private algorithm, this holds only with --simulate, because
    otherwise the noise comes from the operating system. Missing files of a data set are first
    downloaded to --raw.

    With --engine mpi, the clients are divided among the ranks that mpiexec has started. The result
    equals the result of --engine plain to the last bit.

    \b
    Examples:
      fedcore run block_krylov w8a -r 5 --surrogate --set tol=1e-8 --repeats 5
      fedcore run block_krylov north.csv south.csv west.csv -r 2 --center
      fedcore run ssi mnist -r 20 --set tol=1e-6 --partition by=label --out mnist.h5
      fedcore run fedrep mnist --surrogate --set model=femnist_mlp --set rounds=5
      fedcore run fedrep_linear north.csv south.csv -r 2 --labels outcome
      fedcore run fedavg a.npz b.npz --labels y --set model=femnist_mlp --set participation=1
      mpiexec -n 4 fedcore run ssi problem.h5 -r 20 --engine mpi
    """
    blas.limit_threads(blas_threads)

    def body(ranks: Ranks | None) -> None:
        options.require_output("--out", out, "history", [*data, asked["raw"]], force)
        from fedcore import algorithms
        from fedcore.reports import description
        from fedcore.reports.terminal import one_run

        chosen, wanted = algorithms.get(algorithm), RunOptions(**asked)
        params = wanted.params(chosen, options.parameters(settings)[""])
        read = partial(wanted.data, data, [chosen], wanted.with_noise(chosen, params))
        found = read() if ranks is None else ranks.first(read)
        history = wanted.history(chosen, params, found)
        description.add_components(history, chosen, found.draws, found.columns)
        if out:
            history.save(out, force=force)
        said = description.describe(history)
        emit(said, lambda: one_run(said), as_json)

    under(engine, body)


@click.command()
@click.argument("words", metavar="ALGORITHM... DATA...", nargs=-1, required=True)
@shared
@click.option("--out", type=click.Path(file_okay=False), help="Write the histories to this folder.")
@click.option("--plot", metavar="PATH", callback=options.figure, help="Draw PATH.png and PATH.pdf.")
@options.force
@as_json
def compare(
    words: tuple[str, ...],
    settings: tuple[str, ...],
    out: str | None,
    plot: str | None,
    force: bool,
    as_json: bool,
    blas_threads: int | None,
    **asked: Any,
) -> None:
    """Compare algorithms on the same DATA in a table, with the best value of each metric if known.

    DATA and options are as for fedcore run. --set NAME=VALUE applies to every algorithm that has
    the parameter, --set ALGORITHM.NAME=VALUE to one algorithm. --plot draws the metrics against
    rounds, uploaded bytes and downloaded bytes and, for private runs, against ε.

    \b
    Examples:
      fedcore compare ssi block_krylov local_power w8a -r 5 --surrogate --plot fig
      fedcore compare ssi one_shot north.csv south.csv -r 2 --center --json
    """
    blas.limit_threads(blas_threads)
    options.require_output("--out", out, "folder")
    from fedcore import algorithms
    from fedcore.files import outputs
    from fedcore.reports import comparison, plotting
    from fedcore.reports.description import describe
    from fedcore.reports.terminal import side_by_side

    names, data = _names_and_data(words)
    kept = {name: str(Path(out) / f"{name}.h5") for name in names} if out else {}
    for path in kept.values():
        outputs.require(path, "history", inputs=[*data, asked["raw"]], force=force)
    options.require_output("--plot", plot, "figure", [*data, asked["raw"]], force)
    chosen, wanted = [algorithms.get(name) for name in names], RunOptions(**asked)
    if len({algorithm.task for algorithm in chosen}) > 1:
        raise InputError("networks and subspaces have no metric in common: compare them separately")
    params = _params_of_each(chosen, wanted, settings)
    private = [one.name for one in chosen if wanted.with_noise(one, params[one.name])]
    if plot and private and not wanted.keep_exact:
        raise InputError(
            f"--plot draws metrics, which the private run of {private[0]} does not release",
            advice=[Advice("draw them all the same", {"keep_exact": True}),
                    Advice("try it out", {"simulate": True}), Advice("", {"plot": None})],
        )  # fmt: skip
    clients = wanted.data(data, chosen, bool(private))
    histories = {
        algorithm.name: wanted.history(algorithm, params[algorithm.name], clients)
        for algorithm in chosen
    }
    for name, path in kept.items():
        histories[name].save(path, force=force)
    said = {name: describe(history) for name, history in histories.items()}
    emit(said, lambda: side_by_side(said), as_json)
    if plot:
        across = comparison.axes(histories)
        comparison.figure(histories, across, path=plot, force=force)
        for file in plotting.files(plot):
            say(file, err=True)


def _names_and_data(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the algorithms' names, and the data sets and files; any other word is an error."""
    from fedcore import algorithms, datasets

    known = algorithms.names()
    names = list(dict.fromkeys(word for word in words if word in known))
    data = [word for word in words if word not in known]
    for word in data:
        if word not in datasets.names() and not Path(word).suffix and not Path(word).exists():
            every = {*known, *datasets.names()}
            lists = "`fedcore list methods` and `fedcore list datasets` show all"
            require_known(word, every, "no algorithm and no data set", InputError, listed=lists)
    if not data or not names:
        raise click.UsageError("Name one or more algorithms, and then the data.")
    return names, data


def _params_of_each(
    chosen: Sequence[Algorithm], wanted: RunOptions, settings: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return each algorithm's parameters from --set NAME and --set ALGORITHM.NAME."""
    names = [algorithm.name for algorithm in chosen]
    given = options.parameters(settings, names)
    known = {field.name for one in chosen for field in fields(one.parameters)}
    for name in given[""]:
        what = f"--set: none of {', '.join(names)} has a parameter"
        require_known(name, known - {"n_components", "start"}, what, InputError)
    return {
        algorithm.name: wanted.params(
            algorithm,
            {k: v for k, v in given[""].items() if algorithm.takes(k)} | given[algorithm.name],
        )
        for algorithm in chosen
    }


def mute_other_ranks() -> None:
    """With --engine mpi, let only the first rank print, even if all ranks find the same error."""
    words = sys.argv[1:]
    asked = "--engine=mpi" in words or ("--engine", "mpi") in itertools.pairwise(words)
    if asked and started_as() > 0:
        sys.stdout = sys.stderr = open(os.devnull, "w")


def under(engine: str, body: Callable[[Ranks | None], Any]) -> None:
    """Call `body` so that its runs use the given engine; with ``mpi``, every rank calls `body`."""
    if engine == "mpi":
        from fedcore.federation.engines import mpi

        mpi.on_all_ranks(body)
        return
    if engine == "in-process":
        body(None)
        return
    from fedcore.federation.engine import everywhere
    from fedcore.federation.engines.in_process import InProcess

    with everywhere(partial(InProcess, plain=True)):
        body(None)

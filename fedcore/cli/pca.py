"""The command `pca`: find principal components of a user's files, with or without privacy."""

# ruff: noqa: D301  (click wants a real backspace before lines that it must not wrap)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fedcore.cli import blas, options, run_options, running
from fedcore.cli.output import as_json, emit, say
from fedcore.errors import Advice, InputError, TableError, warn
from fedcore.words import EXACT

if TYPE_CHECKING:
    import numpy as np

    from fedcore.estimators import FederatedPCA

DELTA = 1e-6
RANGES = "a table with the columns column, low and high, and a line for each column of the data"


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option("--components", "-r", type=float, default=2, show_default=True,
              metavar="NUMBER|SHARE",
              help="Number of components, or (without --epsilon) the share of the variance that "
              "they must explain.")  # fmt: skip
@click.option("--scale", is_flag=True,
              help="Divide each column by its standard deviation over all files.")  # fmt: skip
@click.option("--bounds", metavar="RANGES.csv", type=click.Path(),
              help="Table of each column's public range, with the header column,low,high.  "
              "Values are rescaled: low becomes -1, high becomes 1.")  # fmt: skip
@click.option("--epsilon", type=float,
              help="ε of differential privacy; clients add noise to all they send.")  # fmt: skip
@click.option("--delta", type=float, help=f"δ of differential privacy.  [default: {DELTA:g}]")
@click.option("--plot", metavar="PATH", callback=options.figure,
              help="Draw the scores to PATH.png and PATH.pdf.")  # fmt: skip
@options.force
@as_json
def pca(
    files: tuple[str, ...],
    components: float,
    scale: bool,
    bounds: str | None,
    epsilon: float | None,
    delta: float | None,
    plot: str | None,
    force: bool,
    as_json: bool,
    blas_threads: int | None,
    **tables: Any,
) -> None:
    """Find the principal components of the data in FILES; the data stay with their clients.

    FILES are CSV, Parquet, NPZ or LIBSVM tables. Each file is one client. With --by COLUMN, each
    value in that column is one client. The mean of all rows is subtracted. If columns have
    different units, use --scale or --bounds; otherwise the columns with the largest numbers
    dominate. In Python, use fedcore.FederatedPCA.

    With --epsilon, each client clips its values to --bounds and adds noise to everything that it
    sends. The bounds must be public: write down which values are possible, without looking at the
    data. Without --epsilon, --bounds rescales the columns in the same way, so you can compare the
    private with the exact result.

    \b
    Examples:
      fedcore pca north.csv south.csv west.csv --scale --plot scores
      fedcore pca all.csv --by hospital --without id --missing drop --components 0.9 --scale
      fedcore pca north.csv south.csv west.csv --bounds ranges.csv --epsilon 1
    """
    blas.limit_threads(blas_threads)
    components = int(components) if components.is_integer() else components
    _require(files, components, bounds, epsilon, delta, plot, force)
    from fedcore import FederatedPCA

    mark = EXACT * (epsilon is not None)
    own = run_options.read(files, epsilon is not None, **tables)
    data = dict(zip(own.clients, own.problem.clients, strict=True))
    if epsilon is not None and bounds is None:
        raise InputError(
            f"--epsilon needs public ranges that do not come from the data: write {RANGES}",
            advice=[Advice("name it", {"bounds": "ranges.csv"})],
        )
    low: Any = -1.0
    high: Any = 1.0
    outside: dict[str, int] = {}
    if bounds is not None:
        low, high = ranges(bounds, own.columns, tables["decimal"])
        rows = {name: _dense(x) for name, x in data.items()}
        over = sum(((x < low) | (x > high)).sum(axis=0) for x in rows.values())
        outside = {name: int(n) for name, n in zip(own.columns, over, strict=True) if n}
        n = sum(map(len, rows.values()))
        for name, out, least, most in zip(own.columns, over, low, high, strict=True):
            if 2 * out > n:
                told = f"lie outside of its range in {bounds}, {least:g} to {most:g}: check it"
                warn(f"{out:,} of {n:,} values of '{name}'{mark} {told}")
        data = {name: (2 * x - low - high) / (high - low) for name, x in rows.items()}
    private: dict[str, Any] = {}
    if epsilon is not None:
        private = {"epsilon": epsilon, "delta": DELTA if delta is None else delta}
        private["bounds"] = (-1.0, 1.0)
    model = FederatedPCA(components, scale=scale, **private).fit(data)
    found = {
        "clients": {name: x.shape[0] for name, x in data.items()},
        "outside_bounds": outside,
        "not_released": ["clients", "outside_bounds"] if private else [],
        "features": own.columns,
        "components": model.components_,  # of (row - mean) / scale, in the units of the files
        "mean": (model.mean_ * (high - low) + low + high) / 2,
        "scale": model.scale_ * (high - low) / 2,
        "explained_variance": model.explained_variance_,
        "explained_variance_ratio": model.explained_variance_ratio_,
        "error_estimate": model.error_estimate_,
        "ledger": {**model.ledger_.snapshot(), **({"delta": private["delta"]} if private else {})},
    }
    emit(found, lambda: _told(model, found, bounds), as_json)
    if plot:
        from fedcore.reports import scores

        stems = {Path(file).stem for file in files}
        short = tables["by"] is None and len(stems) == len(files)
        named = {Path(name).stem if short else name: x for name, x in data.items()}
        for file in scores.draw(plot, model, named):
            say(file, err=True)


# Options that `fedcore run` has, too.
OF_RUN = {*run_options.OF_FILES, "blas_threads"} - {"labels"}
pca.params += [option for option in running.run.params if option.name in OF_RUN]


def _require(
    files: Sequence[str], components: float, bounds: str | None, epsilon: float | None,
    delta: float | None, figure: str | None, force: bool,
) -> None:  # fmt: skip
    """Raise `InputError` if options do not fit together, before any file is read."""
    if epsilon is None and delta is not None:
        raise InputError("--delta needs --epsilon: give both")
    if epsilon is not None and 0 < components < 1:
        raise InputError(
            f"--components {components:g} needs exact variances, which --epsilon hides",
            advice=[Advice("give a whole number", {"components": "2"})],
        )
    if figure is not None and components == 1:
        raise InputError("--plot draws two components: give --components 2")
    read = [*files, *([bounds] if bounds else [])]
    options.require_output("--plot", figure, "figure", read, force)


def ranges(path: str, names: Sequence[str], decimal: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the public range of each column, read from the table of --bounds.

    Parameters
    ----------
    path : str
    names : sequence of str
        Names of the columns of the data.
    decimal : str or None
        Decimal point, a dot or a comma. If `decimal` is None, both are tried, and a number whose
        value depends on the choice is an error.

    Returns
    -------
    low, high : ndarray of shape (d,)
        Ends of each column's range, in the order of `names`.
    """
    import numpy as np

    from fedcore.user_tables import names as matching
    from fedcore.user_tables import own_files
    from fedcore.user_tables.columns import refusal

    try:
        how: dict[str, Any] = {"apart": ["column"], "columns": ["low", "high"], "header": True}
        read = [own_files.read(path, **how, decimal=point) for point in decimal or ".,"]
    except TableError as error:
        says = f"--bounds {path} must be {RANGES}: {error.args[0]}"
        ways = [way for way in error.advice if "decimal" in way.options]
        ways = ways or [Advice("write the least and the largest value that can be, as numbers")]
        raise InputError(says, advice=ways) from error
    table, other = read[0], read[-1]
    if (differ := np.argwhere(table.x != other.x)).size:
        at = tuple(differ[0])
        ways = [Advice(f"it is {one.x[at]:.15g}", {"decimal": point})
                for point, one in zip(".,", read, strict=True)]  # fmt: skip
        says = f"'{table.apart['column'][at[0]]}' has {table.x[at]:g} or {other.x[at]:g}"
        raise InputError(f"--bounds {path}: {says}", advice=ways)
    for guess in table.guesses:
        if not guess.options:  # those are of data
            say(guess.format(command=True), err=True)
    lines = [matching.clean(name) for name in table.apart["column"].tolist()]
    _, called = matching.match([names, lines])
    if called:
        takes = ", ".join(f"{old!r} as {new!r}" for old, new in called.items())
        say(f"{path}: takes {takes}", err=True)
    known = dict(zip([called.get(name, name) for name in lines], table.x.tolist(), strict=True))
    if len(known) < len(lines):
        twice = next(name for name in lines if lines.count(name) > 1)
        raise InputError(f"--bounds {path} has two lines for '{twice}': keep one of them")
    every = {"the files": names, path: [*known]}
    if lacking := [one for one in matching.absent(every) if one.file == path]:
        without = [one.column for one in lacking]
        ways = [Advice("add lines with low and high"), Advice("go on", {"without": without})]
        raise refusal(lacking, "--bounds: ", advice=ways)
    for name in names:
        low, high = known[name]
        if not low < high:
            raise InputError(
                f"--bounds {path}: '{name}' goes from {low:g} to {high:g}: give the smallest "
                "possible value as low, and a larger one as high"
            )
    low, high = np.array([known[name] for name in names]).T
    return low, high


def _dense(x: Any) -> Any:
    return x.matrix.toarray() if hasattr(x, "matrix") else x


def _told(model: FederatedPCA, found: Mapping[str, Any], bounds: str | None) -> str:
    """Return a text for the terminal that describes the data, the components and the ledger."""
    from fedcore.estimators.pca import distance
    from fedcore.reports.terminal import weights
    from fedcore.words import counted, in_line

    clients, hidden = found["clients"], EXACT * bool(found["not_released"])
    shown = ", ".join(f"{name} ({n:,})" for name, n in list(clients.items())[:8])
    lines = [
        f"{counted(len(clients), 'client')}, {counted(sum(clients.values()), 'sample')}{hidden}, "
        f"{counted(len(found['features']), 'column')}: {shown}{', …' * (len(clients) > 8)}"
    ]
    if found["outside_bounds"]:
        counts = ", ".join(f"{name} {n:,}" for name, n in found["outside_bounds"].items())
        what = f"cut to it{hidden}" if hidden else "taken as they are"
        lines.append(f"values outside of {bounds}, {what}: {counts}")
    how = [f"-1 to 1 over its range in {bounds}"] * (bounds is not None)
    how += ["less the mean of all samples"]
    how += ["over the standard deviation of all samples"] * bool((model.scale_ != 1).any())
    return "\n".join([
        *map(in_line, lines), "",
        "components: a sample's score is the sum of its values times these weights",
        in_line(f"each value: {', '.join(how)}"),
        *weights(
            found["features"], model.components_, model.explained_variance_,
            model.explained_variance_ratio_,
        ),
        distance(model), "", str(model.ledger_),
    ])  # fmt: skip

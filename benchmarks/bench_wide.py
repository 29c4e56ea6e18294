"""Many more features than samples, sparse: the default against scikit-learn's TruncatedSVD.

1000 samples of 2·10⁵ or 10⁶ features, some 100 of them stored in a row, on five clients:

words    rows like those of text (see bench_sparse.py): singular values fall slowly.
steps    ten directions above noise, whose singular values are far apart.
noise    entries at random places: singular values are as good as equal.

Ours are `FederatedPCA(r)` and `fedcore.run("block_krylov", …)` with and without centring, theirs
TruncatedSVD and PCA by ARPACK on the pooled rows, which ours may not see. TruncatedSVD centres
nothing; it is the peer of the centred runs as well, because centring adds a product of rank one.
Calls take turns, and a ratio is the median over turns. Memory is what a call adds to the peak of a
process of its own. *Blocks* are times of one read of features × r numbers, which is the least that
an answer costs. Errors are sines of the largest angle to the answer of SciPy's svds at its tightest
tolerance. The exit status is 1 when one of ours is above 1e-8. See README.md.
"""

from __future__ import annotations

import one_thread  # noqa: F401  # isort: skip
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from bench_sparse import arpack, words
from sklearn.decomposition import PCA, TruncatedSVD
from timing import interleaved

import fedcore
from fedcore.linalg import orth, sin_theta
from fedcore.reports import tables

N, PER_ROW, CLIENTS, RANK = 1000, 100, 5, 10
TOL = 1e-8  # what the default promises
GOAL = 3.0  # times TruncatedSVD
SIZES = [200_000, 1_000_000]


def noise(n: int, d: int) -> scipy.sparse.csr_array:
    """Rows with entries between 0 and 1 at random places."""
    rng = np.random.default_rng(0)
    parts = rng.random(n * PER_ROW), rng.integers(0, d, n * PER_ROW), np.arange(n + 1) * PER_ROW
    rows = scipy.sparse.csr_array(parts, shape=(n, d))
    rows.sum_duplicates()
    return rows


def steps(n: int, d: int) -> scipy.sparse.csr_array:
    """Rows of noise, and in each some of the features of one of ten topics."""
    rng = np.random.default_rng(1)
    topics = rng.integers(0, d, (RANK, PER_ROW))
    chosen = rng.integers(0, RANK, n)
    values = 30.0 / 1.5 ** chosen[:, None] * (1 + 0.1 * rng.random((n, PER_ROW)))
    parts = values.ravel(), topics[chosen].ravel(), np.arange(n + 1) * PER_ROW
    rows = scipy.sparse.csr_array(parts, shape=(n, d))
    rows.sum_duplicates()
    return scipy.sparse.csr_array(rows + noise(n, d))


KINDS = {"words": words, "steps": steps, "noise": noise}
OURS = {"FederatedPCA": True, "run, centred": True, "run": False}
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "FederatedPCA": lambda rows, parts: fedcore.FederatedPCA(RANK).fit(parts).components_,
    "run, centred": lambda rows, parts: (
        fedcore.run("block_krylov", parts, RANK, measure=[], center=True).components
    ),
    "run": lambda rows, parts: fedcore.run("block_krylov", parts, RANK, measure=[]).components,
    "TruncatedSVD": lambda rows, parts: (
        TruncatedSVD(RANK, algorithm="arpack").fit(rows).components_
    ),
    "PCA": lambda rows, parts: PCA(RANK, svd_solver="arpack").fit(rows).components_,
}


def parts_of(rows: scipy.sparse.csr_array) -> list[scipy.sparse.csr_array]:
    """Return the rows of every client."""
    return [rows[i : i + N // CLIENTS] for i in range(0, N, N // CLIENTS)]


def added(rows: scipy.sparse.csr_array) -> dict[str, int]:
    """Return the bytes that every call adds to the peak of a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        scipy.sparse.save_npz(file := f"{folder}/rows.npz", rows)
        start = [sys.executable, __file__, "--rows", file, "--memory"]
        ways = {"check": True, "capture_output": True, "text": True}
        return {name: int(subprocess.run([*start, name], **ways).stdout) for name in CALLS}


def peak() -> int:
    """Return the most bytes that this process has held; `getrusage` knows its parent's, too."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1))  # type: ignore[union-attr]


def adds(name: str, rows: scipy.sparse.csr_array) -> int:
    """Return the bytes that a call adds to the peak of this process."""
    parts = parts_of(rows)
    small = [part[:9, :200] + scipy.sparse.eye_array(9, 200) for part in parts]
    CALLS[name](scipy.sparse.vstack(small, format="csr"), small)  # loads what is loaded on use
    before = peak()
    CALLS[name](rows, parts)
    return peak() - before


def measured(kind: str, d: int, repeats: int) -> list[dict[str, Any]]:
    """Return the rows of a kind of data in the table."""
    rows = KINDS[kind](N, d)
    parts = parts_of(rows)
    block = np.random.default_rng(2).standard_normal((d, RANK))
    plain = scipy.sparse.linalg.svds(rows, k=RANK, rng=np.random.default_rng(0))[2].T
    exact = {True: orth(arpack(rows, RANK)), False: orth(plain)}
    calls: dict[str, Callable[[], Any]] = {
        name: lambda call=call: call(rows, parts) for name, call in CALLS.items()
    }
    errors = {
        name: sin_theta(calls[name]().T, exact[OURS.get(name, name == "PCA")]) for name in CALLS
    }
    times = interleaved({**calls, "read": lambda: np.vdot(block, block)}, repeats)
    memory = added(rows)
    return [
        {
            "data": f"{kind}, {d:,}", "call": name, "CPU s": median(times[name].cpu),
            "error": errors[name], "/ TruncatedSVD": times[name].over(times["TruncatedSVD"]),
            "/ PCA": times[name].over(times["PCA"]), "blocks": times[name].over(times["read"]),
            "MiB": memory[name] / 2**20,
            "MiB / TruncatedSVD": memory[name] / memory["TruncatedSVD"],
        }
        for name in CALLS
    ]  # fmt: skip


@click.command(help=__doc__.split("\n")[0])
@click.option("--kind", "kinds", multiple=True, type=click.Choice(list(KINDS)))
@click.option("--features", "sizes", multiple=True, type=click.IntRange(min=10 * N))
@click.option("--repeats", default=5, show_default=True)
@click.option("--memory", type=click.Choice(list(CALLS)), help="What one call adds, in bytes.")
@click.option("--rows", "saved", default="", help="File of the rows for --memory.")
@click.option("--json", "file", type=click.Path(), help="Write the figures here.")
def main(
    kinds: tuple[str, ...], sizes: tuple[int, ...], repeats: int, memory: str | None, saved: str,
    file: str | None,
) -> None:  # fmt: skip
    """Time ours and theirs in turns."""
    if memory is not None:
        print(adds(memory, scipy.sparse.load_npz(saved)))
        return
    figures = [
        row for d in sizes or SIZES for kind in kinds or KINDS for row in measured(kind, d, repeats)
    ]
    click.echo(f"{N} samples, {CLIENTS} clients, r = {RANK}; medians of {repeats} repeats\n")
    click.echo(tables.markdown(figures))
    ours = [row for row in figures if row["call"] in OURS]
    for what in ("/ TruncatedSVD", "MiB / TruncatedSVD"):
        over = [f"{row['data']}: {row['call']}" for row in ours if not row[what] <= GOAL]
        click.echo(f"over {GOAL:g} in '{what}': {'; '.join(over) or 'none'}")
    if file is not None:
        Path(file).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    if wrong := [row for row in ours if not row["error"] <= TOL]:
        click.echo(f"not the same subspace: {wrong}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()

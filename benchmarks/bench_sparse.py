"""Sparse clients against the same data as dense matrices: time, and the most memory of a run.

A run is `block_krylov` with centring, in a process of its own, which makes or reads its data:

w8a      49 749 × 300, of which 4 % are not zero, if FEDCORE_MIRROR has it; else its stand-in.
narrow   20 000 × 2 000 generated like the next, small enough for the dense form.
rcv1     47 236 features, some 75 of them in a row, as RCV1 has; dense it would take 7.6 GB.

Sparse and dense runs must find one subspace, and a run that has no dense form that of ARPACK on
the sparse matrix; otherwise the exit status is 1. See README.md.
"""

from __future__ import annotations

import one_thread  # noqa: F401  # isort: skip
import itertools
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
import scipy.sparse
import scipy.sparse.linalg

import fedcore
from fedcore.datasets import surrogates
from fedcore.files import libsvm

FAR = 1e-6  # sine of the largest angle between two answers
PER_ROW = 75  # entries of a row of RCV1 on average
PROBLEMS = {"w8a": None, "narrow": (20_000, 2_000), "rcv1": (20_000, 47_236)}


def matrix_of(problem: str) -> scipy.sparse.csr_array:
    """Read or generate the rows of a problem."""
    size = PROBLEMS[problem]
    if size is not None:
        return words(*size)
    path = Path(os.environ.get("FEDCORE_MIRROR", ""), "w8a", "w8a")
    if path.is_file():
        return libsvm.table(path, 300)[2]
    return scipy.sparse.csr_array(surrogates.sparse_binary("train", 2, samples=49_749).x)


def words(n: int, d: int) -> scipy.sparse.csr_array:
    """Generate rows of unit length like those of text: words by Zipf's law, of eight topics."""
    rng = np.random.default_rng(0)
    chances = 1.0 / np.arange(10, d + 10)
    orders = [rng.permutation(d) for _ in range(8)]
    topics = rng.choice(8, n, p=np.array([8, 7, 6, 5, 4, 3, 2, 1]) / 36)
    drawn = rng.choice(d, (n, PER_ROW), p=chances / chances.sum())
    own = rng.random((n, PER_ROW)) < 0.5  # the other half are words that all topics share
    columns = np.where(own, np.array(orders)[topics[:, None], drawn], drawn)
    values = rng.exponential(size=(n, PER_ROW))
    parts = values.ravel(), columns.ravel(), np.arange(n + 1) * PER_ROW
    rows = scipy.sparse.csr_array(parts, shape=(n, d))
    rows.sum_duplicates()
    lengths = np.sqrt(rows.power(2).sum(axis=1))
    return scipy.sparse.csr_array(scipy.sparse.diags_array(1 / lengths) @ rows)


def measured(problem: str, form: str, clients: int, rank: int) -> dict[str, Any]:
    """Run once in this process."""
    rows = matrix_of(problem)
    ends = np.linspace(0, rows.shape[0], clients + 1).astype(int)
    parts = [rows[first:last] for first, last in itertools.pairwise(ends)]
    if form == "dense":
        parts = [part.toarray() for part in parts]
    before, start = peak(), time.process_time()
    result = fedcore.run("block_krylov", parts, rank, center=True, tol=1e-8, measure=[])
    seconds = time.process_time() - start
    found = {
        "shape": rows.shape,
        "stored": int(rows.nnz),
        "data": sum(p.nbytes if form == "dense" else p.data.nbytes + p.indices.nbytes
                    for p in parts),
        "peak": peak(), "before": before, "seconds": seconds, "rounds": result.ledger.rounds,
    }  # fmt: skip
    if form == "sparse":  # after the peak is taken
        start = time.process_time()
        exact = arpack(rows, rank)
        found["arpack"] = time.process_time() - start
        found["angle"] = float(
            np.linalg.norm(exact - result.components.T @ (result.components @ exact), 2)
        )
    return found


def arpack(rows: scipy.sparse.csr_array, rank: int) -> np.ndarray:
    """Leading right singular vectors of the centred rows by SciPy."""
    mean = np.asarray(rows.mean(axis=0))
    operator = scipy.sparse.linalg.LinearOperator(
        rows.shape, dtype=float,
        matvec=lambda x: rows @ x - mean @ x,
        rmatvec=lambda y: rows.T @ y - mean * y.sum(),
        matmat=lambda X: rows @ X - mean @ X,
        rmatmat=lambda Y: rows.T @ Y - np.outer(mean, Y.sum(axis=0)),
    )  # fmt: skip
    return scipy.sparse.linalg.svds(operator, k=rank, random_state=0)[2].T


def peak() -> int:
    """Return the most bytes that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@click.command()
@click.option("--problem", "chosen", multiple=True, type=click.Choice(list(PROBLEMS)))
@click.option("--clients", type=click.IntRange(min=1), default=25, show_default=True)
@click.option("--rank", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--form", type=click.Choice(["sparse", "dense"]), help="One run, in this process.")
@click.option("--json", "file", type=click.Path(), help="Write the figures here.")
def main(
    chosen: tuple[str, ...], clients: int, rank: int, form: str | None, file: str | None
) -> None:
    """Compare sparse and dense clients."""
    if form is not None:
        print(json.dumps(measured(chosen[0], form, clients, rank)))
        return
    figures, good = {}, True
    for problem in chosen or PROBLEMS:
        for kind in ("sparse",) if problem == "rcv1" else ("sparse", "dense"):
            call = [sys.executable, __file__, "--problem", problem, "--form", kind]
            call += ["--clients", str(clients), "--rank", str(rank)]
            done = subprocess.run(call, check=True, capture_output=True, text=True)
            found = figures[f"{problem} {kind}"] = json.loads(done.stdout)
            n, d = found["shape"]
            print(
                f"{problem:7} {kind:7} {n} × {d}, {found['stored'] / (n * d):.2%} stored: "
                f"{found['seconds']:8.3f} CPU s, {found['rounds']} rounds; data "
                f"{found['data'] / 2**20:7.0f} MiB, run adds "
                f"{(found['peak'] - found['before']) / 2**20:6.0f} MiB, "
                f"peak {found['peak'] / 2**20:6.0f} MiB"
            )
            if kind == "sparse":
                print(f"        ARPACK  {found['arpack']:8.3f} CPU s, sine of the angle "
                      f"{found['angle']:.1e}")  # fmt: skip
                good &= found["angle"] <= FAR
    if file is not None:
        Path(file).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    sys.exit(not good)


if __name__ == "__main__":
    main()

"""CPU time of ``SᵢᵀSᵢ Z``, what every eigenspace method spends its time on, and of whole runs.

Products of all clients, per block Z of p columns, in the forms that the library takes:

plain    two passes over every client's data, the reference.
client   every client multiplies by its own Gram matrix, once made.
sum      the server's sum, by one Gram matrix of all data, once made.

Beside them stand the machine's own figures: the rate of a large square product, and one read of the
data; `pair` is the time for the columns of two starts side by side (see
`fedcore.federation.lockstep`), of that for one after the other. Then whole runs, down to
``‖P⊥AAᵀZ‖_F ≤ 1e−8 ‖A‖₂²`` with all metrics of the workflow, with ARPACK on the data as the
reference. The exit status is 1 when a form gives another product or a run another subspace. See
README.md.
"""

from __future__ import annotations

import one_thread  # noqa: F401  # isort: skip
import sys
import time
from types import SimpleNamespace

import click
import numpy as np
import scipy.sparse.linalg
from timing import seconds

from fedcore import algorithms
from fedcore.api import execute
from fedcore.experiments import build
from fedcore.experiments.stopping import Stop
from fedcore.linalg import gram_matrix
from fedcore.metrics import eigenspace
from fedcore.parts.gram_products import gram_product, local_gram_product
from fedcore.problems.problem import Problem

STOP = {"kkt_residual": {"at_most": 1e-8}}
FAR = 1e-6  # sine of the largest angle to ARPACK's subspace


def products(problem: Problem, p: int, rng: np.random.Generator) -> bool:
    """Print the time of the three forms; return whether they agree."""
    clients, (n, m) = problem.clients, (problem.n_features, problem.n_samples)
    Z = np.linalg.qr(rng.standard_normal((n, p)))[0]
    pair = np.hstack([Z, Z])
    square = rng.standard_normal((1000, 1000))
    peak = 2e9 / seconds(lambda: square @ square)
    read = seconds(lambda: [np.vdot(client, client) for client in clients])
    states = [SimpleNamespace(kept=SimpleNamespace()) for _ in clients]
    for state in states:
        state.columns_seen = 10**9  # made at the first product

    def plain(Z: np.ndarray) -> np.ndarray:
        return sum(
            gram_product(client, state, Z) for client, state in zip(clients, states, strict=True)
        )

    def client(Z: np.ndarray) -> np.ndarray:
        return sum(
            local_gram_product(c, state, Z) for c, state in zip(clients, states, strict=True)
        )

    start = time.process_time()
    clients.gram = gram_matrix(clients)
    made = time.process_time() - start
    forms = {"plain": (plain, 4 * n * m * p), "sum": (lambda Z: clients.gram @ Z, 2 * n * n * p)}
    if 2 * m > n * len(clients):
        forms["client"] = (client, 2 * n * n * p * len(clients))
    click.echo(
        f"rate of a square product {peak / 1e9:.3g} GFlop/s, one read of the data {read:.3g} s,"
    )
    click.echo(f"the Gram matrix of all data once {made:.3g} s")
    click.echo(
        f"{'form':<8}{'s':>10}{'GFlop/s':>10}{'of peak':>10}{'of plain':>10}{'reads':>8}{'pair':>8}"
    )
    exact, times = plain(Z), {}
    for name, (form, work) in forms.items():
        times[name] = t = seconds(lambda form=form: form(Z))
        both = seconds(lambda form=form: form(pair)) / (2.0 * t)
        rate = work / t
        click.echo(
            f"{name:<8}{t:>10.4f}{rate / 1e9:>10.3g}{rate / peak:>10.2f}"
            f"{t / times['plain']:>10.3f}{t / read:>8.2f}{both:>8.2f}"
        )
    scale = np.finfo(float).eps * np.linalg.norm(clients.gram) * n
    return all(np.abs(form(Z) - exact).max() <= scale for form, _ in forms.values())


def runs(problem: Problem, p: int) -> bool:
    """Print the time of whole runs; return whether all of them found ARPACK's subspace."""
    data, n = list(problem.clients), problem.n_features
    A = scipy.sparse.linalg.LinearOperator(
        (n, n),
        matvec=lambda z: sum(c.T @ (c @ z) for c in data),
        dtype=float,
    )
    start = time.process_time()
    exact = scipy.sparse.linalg.eigsh(A, p, v0=np.ones(n), tol=1e-12)[1]
    reference = time.process_time() - start
    click.echo(f"\n{'run':<18}{'s':>10}{'of ARPACK':>12}{'rounds':>8}")
    click.echo(f"{'ARPACK':<18}{reference:>10.3f}{1:>12.3f}{'':>8}")
    good = True
    for name in ("ssi", "local_power", "block_krylov", "momentum_power", "faps"):
        algorithm = algorithms.get(name)
        extra = {"inner": "residual"} if name == "faps" else {}
        settings = algorithm.params({"n_components": p, **extra})
        start = time.process_time()
        recorder, found = execute(
            algorithm, problem, settings, 0, list(eigenspace.METRICS), stop=Stop(STOP)
        )
        spent = time.process_time() - start
        basis = found["basis"]
        good &= bool(np.linalg.norm(exact - basis @ (basis.T @ exact), 2) <= FAR)
        rounds = recorder.rows[-1]["round"]
        click.echo(f"{name:<18}{spent:>10.3f}{spent / reference:>12.3f}{rounds:>8}")
    return good


@click.command(help=__doc__.split("\n")[0])
@click.option("--features", default=1000, show_default=True, help="n.")
@click.option("--samples", default=16000, show_default=True, help="m, over all clients.")
@click.option("--clients", default=16, show_default=True)
@click.option("--columns", default=10, show_default=True, help="p.")
@click.option("--xi", default=1.05, show_default=True, help="Ratio of singular values.")
def main(features: int, samples: int, clients: int, columns: int, xi: float) -> None:
    params = {"n_features": features, "n_samples": samples, "n_clients": clients, "xi": xi}
    spec = {"generator": "spectrum", "params": params}
    problem = build.build("bench", spec, raw="", seed=0, surrogate=False)
    click.echo(f"n = {features}, m = {samples}, {clients} clients, p = {columns}")
    same = products(problem, columns, np.random.default_rng(0))
    found = runs(problem, columns)
    if not (same and found):
        click.echo("a form gives another product, or a run another subspace", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()

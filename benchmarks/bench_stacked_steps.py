"""CPU time of FedRep on many small clients: stacked steps against one call per client.

stacked  all participants of a round in one array operation (`stacked`).
plain    the same step, client by client (``stack=False``).
direct   a plain loop over clients with ``numpy.linalg.lstsq``, without a federation or a ledger.

All take the same 200 rounds of the setting of Figure 3 (d = 10, k = 2, m = 5, a tenth of the
clients per round) from the same start. Beside them stands what the machine needs to copy the
participants' samples together, which any vectorised form has to do. The exit status is 1 when two
forms end more than 1e-8 apart. See README.md.
"""

from __future__ import annotations

import one_thread  # noqa: F401  # isort: skip
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import click
import numpy as np

from fedcore import algorithms, metrics
from fedcore.api import execute
from fedcore.experiments import build
from fedcore.federation.federation import Federation
from fedcore.linalg import orth
from fedcore.problems.problem import Problem
from fedcore.reports import tables

TOLERANCE = 1e-8
PART, STEP = 0.1, 0.25


def problem_of(n: int) -> Problem:
    """Clients of Figure 3 with heads of Assumption 3 and no noise."""
    params = {"n_clients": n, "samples": 5, "n_features": 10, "rank": 2, "heads": "assumption"}
    spec = {"generator": "shared_heads", "params": params}
    return build.build("bench", spec, raw="", seed=1, surrogate=False)


def library(problem: Problem, rounds: int, start: np.ndarray, stack: bool, measure: bool) -> Any:
    """FedRep on the library's own road."""
    algorithm = algorithms.get("fedrep_linear")
    settings = algorithm.params(
        {"n_components": 2, "rounds": rounds, "participation": PART, "step": STEP, "start": start}
    )
    wanted = [metrics.get("representation_distance")] if measure else []
    return execute(algorithm, problem, settings, 0, wanted, stack=stack)[1]["V"]


def direct(problem: Problem, rounds: int, start: np.ndarray) -> np.ndarray:
    """Algorithm 2 as one would write it down; draws the same participants."""
    clients, labels = problem.clients[:], problem.clients.labels
    assert labels is not None
    rng, B, n = Federation(problem.clients, 0, check=False).rng, orth(start), len(clients)
    for _ in range(rounds):
        total = np.zeros_like(B)
        chosen = rng.choice(n, max(1, round(PART * n)), replace=False)
        for i in sorted(chosen):
            X, y = clients[i], labels[i]
            w = np.linalg.lstsq(X @ B, y, rcond=None)[0]
            total += B - STEP * np.outer(X.T @ (X @ B @ w - y), w) / len(X)
        B = orth(total / len(chosen))
    return B


def copies(problem: Problem, rounds: int) -> None:
    """What any vectorised round does first: the samples of the participants side by side."""
    rng, n = np.random.default_rng(0), len(problem.clients)
    for _ in range(rounds):
        problem.clients.stack[rng.choice(n, max(1, round(PART * n)), replace=False)].copy()


def timed(call: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Median CPU seconds and the last result."""
    seconds, result = [], None
    for _ in range(repeats):
        start = time.process_time()
        result = call()
        seconds.append(time.process_time() - start)
    return median(seconds), result


@click.command()
@click.option("--rounds", default=200, show_default=True)
@click.option("--repeats", default=3, show_default=True)
@click.option("--clients", default="100,1000,10000", show_default=True, help="values of n")
def main(rounds: int, repeats: int, clients: str) -> None:
    """Print the times, their ratios, and whether the forms agree."""
    rows, worst = [], 0.0
    for n in map(int, clients.split(",")):
        problem = problem_of(n)
        start = np.random.default_rng(2).standard_normal((10, 2))
        forms: dict[str, Callable[[], Any]] = {
            "stacked, recorded": lambda p=problem, s=start: library(p, rounds, s, True, True),
            "stacked": lambda p=problem, s=start: library(p, rounds, s, True, False),
            "plain": lambda p=problem, s=start: library(p, rounds, s, False, False),
            "direct": lambda p=problem, s=start: direct(p, rounds, s),
            "copies alone": lambda p=problem: copies(p, rounds),
        }
        found = {name: timed(call, repeats) for name, call in forms.items()}
        projections = [V @ np.linalg.pinv(V) for name, (_, V) in found.items() if V is not None]
        worst = max(worst, *(float(np.abs(P - projections[0]).max()) for P in projections))
        seconds = {name: value for name, (value, _) in found.items()}
        rows.append(
            {"n": n, **seconds}
            | {
                f"{name} / stacked": seconds[name] / seconds["stacked"]
                for name in ("plain", "direct")
            }
            | {"stacked / copies": seconds["stacked"] / seconds["copies alone"]}
        )
    click.echo(tables.markdown(rows, caption=f"CPU seconds for {rounds} rounds"))
    click.echo(f"largest difference of the projections: {worst:.1e}")
    if not worst <= TOLERANCE:
        sys.exit(1)


if __name__ == "__main__":
    main()

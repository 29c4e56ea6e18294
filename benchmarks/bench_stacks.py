"""CPU time of many equal clients, and of a cell's starts, which compute as one array.

The clients have 10 samples of 20 features, and methods look for three components. A figure is the
difference of a long and a short run, over clients and rounds; the fixed cost is what a run of no
round would take for each client.

The cell is FAPS with five starts, ten components and two clients of 1000 samples and features; its
starts run side by side, as in a cell that shares products, and one after the other. See README.md.
"""

from __future__ import annotations

import one_thread  # noqa: F401  # isort: skip
import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import fedcore
from fedcore import algorithms
from fedcore.federation import lockstep
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.runs import execute

METHODS: dict[str, tuple[str, str, tuple[int, int], dict[str, Any]]] = {
    "ssi": ("ssi", "rounds", (3, 13), {}),
    "local_power": ("local_power", "rounds", (2, 8), {"local_steps": 2, "schedule": "constant"}),
    "local_power, Procrustes": (
        "local_power", "rounds", (2, 8),
        {"local_steps": 2, "schedule": "constant", "alignment": "procrustes"},
    ),
    "faps, one step": ("faps", "rounds", (1, 6), {"inner": "fixed", "inner_steps": 1}),
    "faps, as printed": ("faps", "rounds", (1, 3), {}),
    "fedpower, no noise": (
        "fedpower", "iterations", (4, 12),
        {"local_steps": 2, "schedule": "constant", "epsilon": None},
    ),
    "noisy_power": ("noisy_power", "rounds", (1, 3), {"epsilon": 1.0, "delta": 1e-5}),
}  # fmt: skip
CELLS: dict[str, dict[str, Any]] = {
    "as printed": {},
    "server-subspaces": {"inner_start": "server", "inner": "subspace_change"},
}
TARGETS = {"local_power": 5.0, "faps, one step": 10.0, "faps, as printed": 60.0}


def seconds(call: Callable[[], object], repeats: int = 3) -> float:
    """Return the least CPU seconds of a call."""
    found = []
    for _ in range(repeats):
        begin = time.process_time()
        call()
        found.append(time.process_time() - begin)
    return min(found)


def main() -> None:
    """Print a row for every method, and one for every cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, nargs="+", default=[10_000])
    parser.add_argument("--method", nargs="+", choices=METHODS, default=list(METHODS))
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| clients | method | µs of a client and round | target | fixed µs of a client |")
    print("| --: | :-- | --: | --: | --: |")
    for count in asked.clients:
        data = np.random.default_rng(0).standard_normal((count, 10, 20))
        rows = data / np.linalg.norm(data, axis=2, keepdims=True)
        for name in asked.method:
            algorithm, key, (few, many), params = METHODS[name]
            clients = list(rows if "epsilon" in params else data)

            def run(
                rounds: int, algorithm: str = algorithm, key: str = key,
                clients: list[np.ndarray] = clients, params: dict[str, Any] = params,
            ) -> None:  # fmt: skip
                simulate = params.get("epsilon") is not None
                options = {**params, key: rounds, "simulate": simulate}
                fedcore.run(algorithm, clients, 3, measure=(), iterates="none", **options)

            short, long = (seconds(lambda n=n, run=run: run(n)) for n in (few, many))
            each = (long - short) / (many - few)
            fixed = short - few * each
            target = f"≤ {TARGETS[name]:g}" if name in TARGETS else ""
            figures = [f"{1e6 * part / count:.2f}" for part in (each, fixed)]
            print(f"| {count} | {name} | {figures[0]} | {target} | {figures[1]} |", flush=True)
    print("\n| FAPS, a cell of five starts | side by side, s | one by one, s | ratio |")
    print("| :-- | --: | --: | --: |")
    drawn = np.random.default_rng(0).standard_normal((2, 1000, 1000)) * 1.01 ** -np.arange(1000.0)
    for name, params in CELLS.items():
        method = algorithms.get("faps")
        settings = method.params({"n_components": 10, "rounds": 20, **params})

        def starts(settings: Any = settings, method: Any = method) -> list[Callable[[], object]]:
            problem = Problem("cell", Clients(list(drawn)))  # nothing is kept from before
            return [partial(execute, method, problem, settings, seed) for seed in range(5)]

        beside = seconds(lambda starts=starts: lockstep.run_all(starts(), range(5)), 2)
        after = seconds(lambda starts=starts: [call() for call in starts()], 2)
        print(f"| {name} | {beside:.2f} | {after:.2f} | {after / beside:.2f} |", flush=True)


if __name__ == "__main__":
    main()

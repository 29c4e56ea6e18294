"""CPU time of a client and round for many equal clients, which compute as one array.

The clients have 10 samples of 20 features, and methods look for three components. A figure is the
difference of a long and a short run, over clients and rounds; the fixed cost is what a run of no
round would take for each client. Beside them stand the bare NumPy calls of such a stack.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import one_thread  # noqa: F401 (before NumPy)

import fedcore

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
    """Print a row for every method."""
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


if __name__ == "__main__":
    main()

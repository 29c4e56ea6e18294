"""Federated peers on the same data: Flower, FL4Health's PCA, and diffprivlib's private one.

Each runs in an environment of its own (`peers.py`) and takes turns with ours, after a turn that is
not counted. Seconds are CPU seconds of a turn, those of the peer's own processes included.

merged     FL4Health's one-shot PCA, in single precision, against `FederatedPCA(r)`: with its
           defaults, and with the peer's error as `tol`. A client of FL4Health takes off its own
           mean, so only where all means are equal does it look for the same subspace.
rounds     SSI from the same start: an app in Flower's simulation, and `fedcore.run`.
private    diffprivlib's PCA (ε, δ = 0) against our methods (ε, δ = 1e-5), all of one client.

The exit status is 1 if Flower's basis is not ours. See README.md.
"""

from __future__ import annotations

import one_thread  # noqa: F401  # isort: skip
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import click
import numpy as np
from bench_users import pooled
from timing import interleaved

import fedcore
from fedcore.linalg import orth, sin_theta
from fedcore.reports import tables

PINS = {  # what pip installs, in turn
    "flower": ["flwr[simulation]==1.42.0"],
    "fl4health": [
        "flwr==1.18.0 torch==2.13.0 numpy==1.26.4 opacus==1.6.0",
        "--no-deps --ignore-requires-python fl4health==0.4.2",
    ],
    "diffprivlib": ["diffprivlib==0.6.6 scikit-learn==1.6.1"],
}
QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
SAME = 1e-8  # sine of Flower's basis and ours
DELTA = 1e-5
LIMIT = 20  # CPU seconds of diffprivlib

Call = Callable[[], np.ndarray]  # to a basis as columns


def install(environments: str) -> None:
    """Make the environments of the peers."""
    for name, steps in PINS.items():
        folder = Path(environments, name)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        for step in steps:
            subprocess.run([folder / "bin/pip", "install", *step.split()], check=True)


class Merge(NamedTuple):
    """A problem, and FL4Health's options: its merge, and the rank of a client's randomised SVD."""

    n: int
    d: int
    clients: int
    r: int
    equal_means: bool
    merge: str = "svd"
    rank: int | None = None


MERGES = [
    Merge(20_000, 100, 10, 5, False), Merge(20_000, 100, 10, 5, True),
    Merge(20_000, 500, 10, 10, False), Merge(20_000, 500, 10, 10, True),
    Merge(20_000, 500, 10, 10, True, "qr"), Merge(20_000, 500, 10, 10, True, "svd", 20),
]  # fmt: skip
ROUNDS = [(20_000, 500, 10, 10, 10)]  # n, d, clients, r, rounds
PRIVATE = [(20_000, 6, 2, 1.0), (20_000, 50, 5, 1.0)]  # n, d, r, ε


class Peer:
    """A process of a peer, which does a turn when it is asked."""

    def __init__(self, environments: str, name: str, rows: np.ndarray, **asked: Any) -> None:
        self.holder = tempfile.TemporaryDirectory()
        self.folder = Path(self.holder.name)
        np.save(self.folder / "rows.npy", rows)
        np.save(self.folder / "start.npy", asked.pop("start", np.zeros(0)))
        text = json.dumps({**asked, "folder": self.holder.name})
        python = Path(environments, name, "bin/python")
        own = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        with (self.folder / "log").open("w") as log:
            self.process = subprocess.Popen(
                [python, "-W", "ignore", Path(__file__).with_name("peers.py"), name, text],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                env={**own, **QUIET},
            )  # fmt: skip

    def turn(self, seed: int) -> float:
        """Return the CPU seconds of a turn, infinity if the process has ended at its limit."""
        assert self.process.stdin is not None and self.process.stdout is not None
        if self.process.poll() is None:
            self.process.stdin.write(f"{seed}\n")
            self.process.stdin.flush()
            said = self.process.stdout.readline()
            if said:
                return float(said)
        if self.process.wait() != -signal.SIGXCPU:
            sys.exit(f"Error: a peer has ended: {(self.folder / 'log').read_text()[-4000:]}")
        return math.inf

    def basis(self) -> np.ndarray:
        """Return an orthonormal basis of what the last turn has found."""
        return orth(np.load(self.folder / "basis.npy").astype(float))

    def end(self) -> None:
        """Close its input, upon which it ends."""
        self.process.communicate()
        self.holder.cleanup()


def in_turns(peer: Peer, calls: dict[str, Call], repeats: int) -> dict[str, list[float]]:
    """Return the CPU seconds of the peer, which has had a turn, and of ours."""
    found: dict[str, list[float]] = {"theirs": [], **{name: [] for name in calls}}
    for turn in range(repeats):
        found["theirs"].append(peer.turn(turn))
        for name, ours in interleaved(calls, 1).items():
            found[name] += ours.cpu
    return found


def ratio(theirs: list[float], ours: list[float]) -> float:
    """Return the median over turns of their seconds in ours."""
    return median(one / other for one, other in zip(theirs, ours, strict=True))


def merged(environments: str, case: Merge, repeats: int) -> dict[str, Any]:
    """Return the row of a case of FL4Health."""
    S, axes = pooled(case.n, case.d, 1.1)
    parts = np.array_split(S, case.clients)
    if case.equal_means:
        parts = [part - part.mean(axis=0) for part in parts]
        axes = np.linalg.svd(np.vstack(parts), full_matrices=False)[2]
    exact = axes[: case.r].T
    asked = {"clients": case.clients, "r": case.r, "merge": case.merge, "rank": case.rank}
    peer = Peer(environments, "fl4health", np.vstack(parts), **asked)
    peer.turn(0)
    error = sin_theta(exact, peer.basis())
    fit = fedcore.FederatedPCA
    calls: dict[str, Call] = {
        "ours": lambda: fit(case.r).fit(parts).components_.T,
        "at its error": lambda: fit(case.r, tol=error).fit(parts).components_.T,
    }
    times = in_turns(peer, calls, repeats)
    peer.end()
    reached = {name: sin_theta(exact, call()) for name, call in calls.items()}
    return {
        "n × d, clients, r": f"{case.n} × {case.d}, {case.clients}, {case.r}",
        "means": "equal" if case.equal_means else "own",
        "merge": case.merge, "rank": "all" if case.rank is None else case.rank,
        "FL4Health, s": median(times["theirs"]), "error": error,
        "ours, s": median(times["ours"]), "our error": reached["ours"],
        "theirs / ours": ratio(times["theirs"], times["ours"]),
        "ours at its error, s": median(times["at its error"]), "reached": reached["at its error"],
        "theirs / this": ratio(times["theirs"], times["at its error"]),
    }  # fmt: skip


def rounds(environments: str, case: tuple[int, int, int, int, int], repeats: int) -> dict[str, Any]:
    """Return the row of a case of Flower."""
    n, d, clients, r, many = case
    S = pooled(n, d, 1.1)[0]
    parts = np.array_split(S - S.mean(axis=0), clients)
    Z = np.linalg.qr(np.random.default_rng(1).standard_normal((d, r)))[0]
    begun = time.perf_counter()
    asked = {"clients": clients, "rounds": many, "start": Z}
    peer = Peer(environments, "flower", np.vstack(parts), **asked)
    peer.turn(0)
    begun = time.perf_counter() - begun
    options = {"start": Z, "rounds": many, "tol": 0, "measure": ()}

    def ours() -> np.ndarray:
        return fedcore.run("ssi", parts, r, **options).components.T

    times = in_turns(peer, {"ours": ours}, repeats)
    difference = sin_theta(ours(), peer.basis())
    peer.end()
    return {
        "n × d, clients, r": f"{n} × {d}, {clients}, {r}", "rounds": many,
        "Flower, s": median(times["theirs"]), "ours, s": median(times["ours"]),
        "theirs / ours": ratio(times["theirs"], times["ours"]), "difference": difference,
        "its start and first turn, wall s": begun,
    }  # fmt: skip


def private(
    environments: str, case: tuple[int, int, int, float], repeats: int
) -> list[dict[str, Any]]:
    """Return the rows of a case of diffprivlib; each turn draws other noise."""
    n, d, r, epsilon = case
    S = np.random.default_rng(0).standard_normal((n, d)) * 1.1 ** -np.arange(d)
    S /= np.linalg.norm(S, axis=1, keepdims=True)
    best = float(np.linalg.eigvalsh(S.T @ S)[-r:].sum())
    peer = Peer(environments, "diffprivlib", S, r=r, epsilon=epsilon, limit=LIMIT)
    methods = "analyze_gauss", "noisy_power"
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ("diffprivlib", *methods)}

    def add(name: str, seconds: float, basis: np.ndarray) -> None:
        found[name].append((seconds, float(np.linalg.norm(S @ basis) ** 2 / best)))

    options = {"epsilon": epsilon, "delta": DELTA, "measure": ()}
    for seed in range(repeats + 1):
        seconds = peer.turn(seed)
        if seconds < math.inf:
            add("diffprivlib", seconds, peer.basis())
        for name in methods:
            begun = time.process_time()
            result = fedcore.run(name, [S], r, seed=seed, **options)
            add(name, time.process_time() - begun, result.components.T)
    peer.end()
    rows = []
    for name, turns in found.items():
        seconds, share = np.median(turns[1:], axis=0) if turns else (math.inf, math.nan)
        rows.append({
            "n × d, r, ε": f"{n} × {d}, {r}, {epsilon:g}", "method": name,
            "δ": 0.0 if name == "diffprivlib" else DELTA,
            "CPU s": float(seconds) if turns else f"> {LIMIT}",
            "captured": float(share) if turns else "",
        })  # fmt: skip
    return rows


@click.command(help=__doc__.split("\n")[0])
@click.option("--peer", "peers", multiple=True, type=click.Choice(["merged", "rounds", "private"]))
@click.option("--environments", default=".venv-peers", show_default=True, help="Their folder.")
@click.option("--install", "installs", is_flag=True, help="Make the environments, and end.")
@click.option("--repeats", default=3, show_default=True)
def main(peers: tuple[str, ...], environments: str, installs: bool, repeats: int) -> None:
    """Time theirs and ours in turns."""
    if installs:
        install(environments)
        return
    warnings.simplefilter("ignore")  # of noise, and of a run that has no test
    click.echo(f"medians of {repeats} turns, CPU seconds, one BLAS thread\n")
    chosen = peers or ("merged", "rounds", "private")
    same = True
    if "merged" in chosen:
        rows = [merged(environments, case, repeats) for case in MERGES]
        click.echo(tables.markdown(rows, caption="merged"))
    if "rounds" in chosen:
        rows = [rounds(environments, case, repeats) for case in ROUNDS]
        click.echo(tables.markdown(rows, caption="rounds"))
        same = all(row["difference"] <= SAME for row in rows)
    if "private" in chosen:
        rows = [row for case in PRIVATE for row in private(environments, case, repeats)]
        click.echo(tables.markdown(rows, caption="private"))
    sys.exit(not same)


if __name__ == "__main__":
    main()

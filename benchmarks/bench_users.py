"""What a user waits for: the default FederatedPCA against PCA of the pooled data, and the machine.

Four tables come out of one run:

pooled    `FederatedPCA(r)` against scikit-learn's PCA, TruncatedSVD and randomized_svd, and SciPy's
          svds (ARPACK), which see the pooled data. All compute the subspace of the centred data;
          errors are sines of the largest angle to that of numpy's SVD. The randomised ones take
          the fewest iterations that reach the error that ours has reached, or 1e-12 if it is less,
          and, in a column of its own, the fewest that reach the tolerance that ours promises.
limits    the product that the fit spends its time on, against the machine: its operations at the
          rate of a square product, or its data at the rate of a read, whichever is longer.
stages    where the time of a fit goes, by a profile: what holds it back.
textbook  methods in the library, with the ledger, against a plain loop in NumPy (textbook.py): same
          clients, start and rounds.

In a repeat every call has one turn, and ratios are medians over repeats, so that a load of the
machine counts for both sides. The exit status is 1 when a fit misses its tolerance, or a method
differs from its textbook form by more than 1e-8. See README.md.
"""

from __future__ import annotations

import one_thread  # noqa: F401  # isort: skip
import cProfile
import json
import pstats
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import click
import numpy as np
import scipy.sparse.linalg
import textbook
from keep import where
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.utils.extmath import randomized_svd
from timing import Times, interleaved

import fedcore
from fedcore.estimators.exact_fit import gram_comes_first, pooled_gram
from fedcore.experiments.provenance import commit
from fedcore.linalg import sin_theta
from fedcore.problems.clients import Clients
from fedcore.reports import tables

TOL = 1e-8  # what the default promises
ROUNDING = 1e-12  # errors below it count as equal
MOST = 64  # iterations of randomized_svd
GOAL_POOLED, GOAL_LIMIT = 1.5, 0.7
SQUARE = 1000
POWERS = 4  # of power_iteration, whose columns become parallel
STAGES = {  # functions whose time is shown, none inside of another
    "checks": [("matrices.py", "check_clients"), ("clients.py", "require_size")],
    "centring": [("federation.py", "center")],
    "Gram": [("exact_fit.py", "pooled_gram"), ("linalg.py", "gram_matrix")],
    "rounds": [("block_krylov.py", "run")],
    "last round": [("last_round.py", "last_round")],
}


class Case(NamedTuple):
    """Sizes of a problem."""

    n: int
    d: int
    clients: int
    r: int

    def __str__(self) -> str:
        return f"{self.n} × {self.d}, {self.clients}, {self.r}"


CASES = [
    Case(8000, 6, 3, 2), Case(2000, 100, 10, 5), Case(20_000, 100, 10, 5),
    Case(20_000, 500, 10, 2), Case(20_000, 500, 10, 10), Case(20_000, 500, 10, 50),
    Case(20_000, 500, 200, 10), Case(4000, 1000, 10, 10), Case(4000, 2000, 10, 20),
    Case(1000, 4000, 10, 10),
]  # fmt: skip
TEXTBOOK = [CASES[1], CASES[4]]


@cache
def pooled(n: int, d: int, xi: float) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose k-th standard deviation is ``max(xi^-k, 1e-3)``, off the origin; singular vectors.

    The right singular vectors are those of the centred rows by numpy's SVD, as rows.
    """
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((d, min(n, d))))[0]
    sizes = np.maximum(xi ** -np.arange(min(n, d), dtype=float), 1e-3)
    S = (rng.standard_normal((n, min(n, d))) * sizes) @ axes.T + rng.standard_normal(d)
    return S, np.linalg.svd(S - S.mean(axis=0), full_matrices=False)[2]


def least(reached: Callable[[int], bool]) -> int | None:
    """Fewest iterations that are enough, None if `MOST` are too few."""
    low, high = -1, 1
    while not reached(high):
        if high >= MOST:
            return None
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def against_pooled(case: Case, xi: float, repeats: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the rows of a case in the first two tables."""
    S, exact = pooled(case.n, case.d, xi)
    exact = exact[: case.r].T
    parts = [np.ascontiguousarray(part) for part in np.array_split(S, case.clients)]

    def error(rows: np.ndarray) -> float:
        return sin_theta(exact, rows.T)

    def centred() -> np.ndarray:
        return S - S.mean(axis=0)

    def randomized(q: int) -> np.ndarray:
        return randomized_svd(centred(), case.r, n_iter=q, random_state=0)[2]

    def truncated(q: int) -> np.ndarray:
        return TruncatedSVD(case.r, n_iter=q, random_state=0).fit(centred()).components_

    def arpack() -> np.ndarray:
        return scipy.sparse.linalg.svds(centred(), k=case.r, rng=np.random.default_rng(0))[2]

    model = fedcore.FederatedPCA(case.r).fit(parts)
    ours = error(model.components_)
    q = least(lambda q: error(randomized(q)) <= max(ours, ROUNDING))
    promised = least(lambda q: error(randomized(q)) <= TOL)
    most, few = MOST if q is None else q, MOST if promised is None else promised
    Z = np.linalg.qr(np.random.default_rng(1).standard_normal((case.d, case.r)))[0]
    square = np.random.default_rng(2).standard_normal((SQUARE, SQUARE))
    gram = gram_comes_first(Clients(parts), case.r)
    calls: dict[str, Callable[[], Any]] = {
        "ours": lambda: fedcore.FederatedPCA(case.r).fit(parts),
        "PCA": lambda: PCA(case.r, random_state=0).fit(S),
        "randomized": lambda: randomized(most),
        "promised": lambda: randomized(few),
        "TruncatedSVD": lambda: truncated(most),
        "svds": arpack,
        "square": lambda: square @ square,
        "read": lambda: [np.vdot(part, part) for part in parts],
        "product": lambda: pooled_gram(Clients(parts)) if gram else textbook.product(parts, Z),
    }
    times = interleaved(calls, repeats)
    cpu = {name: median(found.cpu) for name, found in times.items()}
    first = {
        "n × d, clients, r": str(case), "ours, s": cpu["ours"], "rounds": model.ledger_.rounds,
        "error": ours, "/ PCA": times["ours"].over(times["PCA"]),
        "error of PCA": error(calls["PCA"]().components_),
        "/ randomized_svd": times["ours"].over(times["randomized"]),
        "n_iter": f"> {MOST}" if q is None else q,
        "the same, wall": times["ours"].over(times["randomized"], "wall"),
        f"/ it to {TOL:g}": times["ours"].over(times["promised"]),
        "its n_iter": f"> {MOST}" if promised is None else promised,
        "/ TruncatedSVD": times["ours"].over(times["TruncatedSVD"]),
        "/ svds": times["ours"].over(times["svds"]),
    }  # fmt: skip
    return first, limits(case, times, gram)


def limits(case: Case, times: dict[str, Times], gram: bool) -> dict[str, Any]:
    """Return the row of a case in the table of limits."""
    cpu = {name: median(found.cpu) for name, found in times.items()}
    rate, data = 2 * SQUARE**3 / cpu["square"], 8 * case.n * case.d
    work = case.n * case.d * (case.d + 1) if gram else 4 * case.n * case.d * case.r
    passes = 1 if gram else 2
    limit = max(work / rate, passes * cpu["read"])
    return {
        "n × d, clients, r": str(case), "product": "Gram matrix" if gram else "SᵀS Z",
        "s": cpu["product"], "GFlop/s": work / cpu["product"] / 1e9,
        "square product, GFlop/s": rate / 1e9, "read, GB/s": data / cpu["read"] / 1e9,
        "limit": "rate" if work / rate >= passes * cpu["read"] else "memory",
        "share of limit": limit / cpu["product"],
    }  # fmt: skip


def stages(case: Case, xi: float) -> dict[str, Any]:
    """Return the row of a case in the table of stages: percent of the CPU time of a fit."""
    parts = np.array_split(pooled(case.n, case.d, xi)[0], case.clients)
    profile = cProfile.Profile(time.process_time)
    for _ in range(3):
        profile.runcall(fedcore.FederatedPCA(case.r).fit, parts)
    found = pstats.Stats(profile)
    spent = {(Path(f).name, name): row[3] for (f, _, name), row in found.stats.items()}  # type: ignore[attr-defined]
    total = spent["pca.py", "fit"]
    shares = {stage: sum(spent.get(one, 0.0) for one in names) for stage, names in STAGES.items()}
    clients = spent["federation.py", "sum"]
    inside = max(clients - shares["last round"], 0.0)  # last_round takes a sum, too
    parts_of = {
        **{k: v for k, v in shares.items() if k != "rounds"},
        "products of clients": inside, "algebra of the server": shares["rounds"] - inside,
    }  # fmt: skip
    row = {name: round(100 * value / total) for name, value in parts_of.items()}
    return {"n × d, clients, r": str(case), **row, "rest": 100 - sum(row.values())}


def against_textbook(case: Case, xi: float, rounds: int, repeats: int) -> list[dict[str, Any]]:
    """Return the rows of a case in the table of methods."""
    S = pooled(case.n, case.d, xi)[0]
    parts = [np.ascontiguousarray(p) for p in np.array_split(S - S.mean(axis=0), case.clients)]
    sigma = np.linalg.svd(S - S.mean(axis=0), compute_uv=False)[case.r]
    Z = np.linalg.qr(np.random.default_rng(1).standard_normal((case.d, case.r)))[0]
    started, many, few = {"start": Z}, {"rounds": rounds}, {"rounds": POWERS}
    steps = {"local_steps": textbook.LOCAL_STEPS, "schedule": "constant"}
    methods: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "ssi": (started | many | {"tol": 0}, many),
        "local_power": (started | many | steps, many),
        "momentum_power": (
            started | many | {"tol": 0, "sigma_next": sigma}, many | {"beta": sigma**4 / 4}
        ),
        "block_krylov": (started | many | {"tol": 0}, many),
        "power_iteration": (started | {"power": POWERS - 1}, few),
        "one_shot": ({}, {}),
    }  # fmt: skip
    rows = []
    for name, (params, options) in methods.items():

        def library(name: str = name, params: dict[str, Any] = params) -> np.ndarray:
            return fedcore.run(name, parts, case.r, measure=[], **params).components.T

        def plain(name: str = name, options: dict[str, Any] = options) -> np.ndarray:
            return getattr(textbook, name)(parts, Z, **options)

        times = interleaved({"library": library, "textbook": plain}, repeats)
        mine, theirs = times["library"], times["textbook"]
        rows.append({
            "method": name, "n × d, clients, r": str(case), "library, s": median(mine.cpu),
            "textbook, s": median(theirs.cpu), "library / textbook": mine.over(theirs),
            "difference": sin_theta(library(), plain()),
        })  # fmt: skip
    return rows


@click.command(help=__doc__.split("\n")[0])
@click.option("--case", "cases", multiple=True, help="n,d,clients,r in place of the usual ones.")
@click.option("--xi", default=1.1, show_default=True, help="Ratio of singular values.")
@click.option("--rounds", default=10, show_default=True, help="Of the textbook's methods.")
@click.option("--repeats", default=5, show_default=True)
@click.option("--json", "file", type=click.Path(), help="Write the figures here.")
def main(cases: tuple[str, ...], xi: float, rounds: int, repeats: int, file: str | None) -> None:
    chosen = [Case(*map(int, text.split(","))) for text in cases] or CASES
    made = where(commit(Path(__file__).parents[1]))  # before files change
    found = [against_pooled(case, xi, repeats) for case in chosen]
    figures = {
        "pooled": [first for first, _ in found],
        "limits": [second for _, second in found],
        "stages": [stages(case, xi) for case in chosen],
        "textbook": [
            row
            for case in (chosen[:1] if cases else TEXTBOOK)
            for row in against_textbook(case, xi, rounds, repeats)
        ],
    }
    click.echo(f"σ falls by {xi:g}; medians of {repeats} repeats, CPU seconds, one BLAS thread")
    click.echo(f"{made}\n")
    for name, rows in figures.items():
        click.echo(tables.markdown(rows, caption=name))
    slow = [r["n × d, clients, r"] for r in figures["pooled"]
            if not r["/ randomized_svd"] <= GOAL_POOLED]  # fmt: skip
    low = [r["n × d, clients, r"] for r in figures["limits"]
           if not r["share of limit"] >= GOAL_LIMIT]  # fmt: skip
    click.echo(
        f"over {GOAL_POOLED} × randomized_svd at equal accuracy: {'; '.join(slow) or 'none'}"
    )
    click.echo(f"product below {GOAL_LIMIT:.0%} of the limit: {'; '.join(low) or 'none'}")
    if file is not None:
        Path(file).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    wrong = [r for r in figures["pooled"] if not r["error"] <= TOL]
    wrong += [r for r in figures["textbook"] if not r["difference"] <= TOL]
    if wrong:
        click.echo(f"not the same subspace: {wrong}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()

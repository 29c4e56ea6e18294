"""Writes docs/error_estimate.md: how far true angles exceed `error_estimate_` (takes minutes).

Each case draws samples, fits a `FederatedPCA`, and compares its `error_estimate_` with the sine of
the largest angle to the exact subspace. The covariance of the stored samples is computed exactly in
whole numbers, and its eigenvectors with `DIGITS` decimal digits.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import mpmath
import numpy as np
import scipy.sparse
from threadpoolctl import threadpool_limits

from fedcore.estimators import FederatedPCA, private
from fedcore.reports import tables

PAGE = Path(__file__).parents[1] / "docs" / "error_estimate.md"
DIGITS = 70  # of the eigenvectors; squares of doubles whose sizes differ by 1e15 have 62
EQUAL = 1e-55  # relative to the trace: eigenvalues that differ by less are the same
DRAWS = 100  # per row of the table
TESTED = ("block_krylov", "momentum_power", "ssi")
DELTA = 1e-6  # of private fits
ALLOWED = 100.0  # times the estimate


class Case(NamedTuple):
    """Samples of clients, and the parameters of a fit.

    Attributes
    ----------
    clients : list of ndarray or sparse array
    options : dict
        Parameters of `FederatedPCA`.
    """

    clients: list[Any]
    options: dict[str, Any]


class Outcome(NamedTuple):
    """The true sine in a case, and what the fit says: the estimated sine, and `converged_`."""

    sine: float
    estimate: float
    converged: bool

    @property
    def ratio(self) -> float:
        """Ratio of the true sine to the estimate; 0 for an exact answer."""
        if not self.sine:
            return 0.0
        return self.sine / self.estimate if self.estimate else np.inf

    @property
    def wrong(self) -> bool:
        """Whether the fit says that it has converged, and the ratio is above `ALLOWED`."""
        return self.converged and self.ratio > ALLOWED


def whole_numbers(rows: np.ndarray) -> np.ndarray:
    """Return the rows times a power of two, as an array of Python's whole numbers."""
    least = min((np.frexp(rows[rows != 0.0])[1] - 53).tolist(), default=0)
    mantissas, exponents = np.frexp(rows.astype(np.float64))
    digits = np.ldexp(mantissas, 53).astype(np.int64).astype(object)
    return digits * 2 ** np.maximum(exponents - 53 - least, 0).astype(object)


def eigenpairs(rows: np.ndarray, scale: np.ndarray, *, center: bool) -> tuple[list, np.ndarray]:
    """Return the eigenvalues of ``SᵀS`` over their sum, in descending order, and the eigenvectors.

    S consists of the rows minus their exact mean (with `center`), divided by `scale`. The
    eigenvectors are the columns of an array of mpmath's numbers.
    """
    numbers = whole_numbers(rows)
    if center:
        numbers = len(numbers) * numbers - numbers.sum(axis=0)
    products, d = numbers.T @ numbers, rows.shape[1]
    over = [mpmath.mpf(float(s)) for s in scale]
    gram = mpmath.matrix(d, d)
    for i in range(d):
        for j in range(d):
            gram[i, j] = mpmath.mpf(int(products[i, j])) / over[i] / over[j]
    trace = sum(gram[i, i] for i in range(d))
    values, vectors = mpmath.eigsy(gram / trace)
    columns = np.array([[vectors[i, j] for j in range(d)] for i in range(d)], dtype=object)
    return [values[j] for j in reversed(range(d))], columns[:, ::-1]


def true_sine(components: np.ndarray, values: list, vectors: np.ndarray) -> float:
    """Return the sine of the largest angle between the components and the exact subspace.

    If the last wanted eigenvalue equals the next one, any directions in their common eigenspace
    count as exact.
    """
    r, d = components.shape
    if r == d:
        return 0.0
    above = [j for j in range(d) if values[j] > values[r - 1] + EQUAL]
    below = [j for j in range(d) if values[j] < values[r - 1] - EQUAL]
    Z = np.vectorize(mpmath.mpf, otypes=[object])(components.astype(np.float64)).T
    outside = vectors[:, below].T @ Z
    wanted = vectors[:, above] - Z @ (Z.T @ vectors[:, above])
    sizes = [np.linalg.norm(part.astype(float), 2) for part in (outside, wanted) if part.size]
    return float(max(sizes, default=0.0))


def outcome(case: Case) -> Outcome:
    """Fit a `FederatedPCA` to a case's samples, and compare its estimate with the true sine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pca = FederatedPCA(**case.options).fit(case.clients)
    dense = [c.toarray() if scipy.sparse.issparse(c) else c for c in case.clients]
    with mpmath.workdps(DIGITS):
        center = case.options.get("center", True)
        exact = eigenpairs(np.vstack(dense), pca.scale_, center=center)
        sine = true_sine(pca.components_, *exact)
    return Outcome(sine, pca.error_estimate_, bool(pca.converged_))


def parts(rows: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Return the rows, divided at random among one to four clients."""
    count = int(rng.integers(1, min(4, len(rows)) + 1))
    cuts = np.sort(rng.choice(np.arange(1, len(rows)), count - 1, replace=False))
    return np.split(rows, cuts)


def asked(rng: np.random.Generator, d: int, **options: Any) -> dict[str, Any]:
    """Return random parameters of a fit: a method of `TESTED`, up to d components, a tolerance."""
    tol = rng.choice([None, None, 1e-1, 1e-2, 1e-4, 1e-6, 1e-12])
    return {
        "n_components": int(rng.integers(1, d + 1)), "algorithm": str(rng.choice(TESTED)),
        "tol": tol, "random_state": int(rng.integers(1 << 30)), **options,
    }  # fmt: skip


def with_values(rng: np.random.Generator, n: int, values: Sequence[float]) -> np.ndarray:
    """Return n rows with mean 0, the singular values `values` and random axes."""
    d = len(values)
    left = rng.standard_normal((n, d))
    left = np.linalg.qr(left - left.mean(axis=0))[0]
    return (left * values) @ np.linalg.qr(rng.standard_normal((d, d)))[0].T


def spread(rng: np.random.Generator, n: int, d: int, decades: float = 1.0) -> np.ndarray:
    """Return Gaussian rows whose features are divided by random factors up to 10**decades."""
    rows = rng.standard_normal((n, d)) @ np.linalg.qr(rng.standard_normal((d, d)))[0]
    return rows * 10.0 ** -rng.uniform(0, decades, d)


def sizes(rng: np.random.Generator) -> tuple[int, int]:
    """Return a random number of samples and a random number of features."""
    return int(rng.integers(5, 50)), int(rng.integers(2, 9))


def drawn(kind: str, level: float, rng: np.random.Generator) -> Case:
    """Return a random case of the kind and value of a table row, such as ("offset", 10.0)."""
    n, d = sizes(rng)
    options: dict[str, Any] = {}
    if kind == "offset":
        rows = level * rng.uniform(-1, 1, d) + spread(rng, n, d)
    elif kind == "offset, sparse":
        rows = spread(rng, n, d) * (rng.random((n, d)) < 0.5)
        few = rng.random(d) < 0.4
        rows[:, few] += level * (rng.random((n, int(few.sum()))) < rng.choice([1, 1, 0.9]))
    elif kind == "offset, float32":
        rows = (level * rng.uniform(-1, 1, d) + spread(rng, n, d)).astype(np.float32)
    elif kind == "offset, scale=True":
        rows = level * rng.uniform(-1, 1, d) + spread(rng, n, d)
        options["scale"] = True
    elif kind == "decades of spread":
        rows = rng.uniform(-1, 1, d) + spread(rng, n, d, level)
    elif kind == "scale":
        rows = level * (rng.uniform(-1, 1, d) + spread(rng, n, d, 2.0))
    elif kind == "relative gap":
        sigma, at = np.sort(rng.uniform(0.1, 1, d))[::-1].copy(), int(rng.integers(0, d))
        equal = slice(at, min(d, at + int(rng.integers(2, 5))))
        sigma[equal] = sigma[at] * (1 - level * np.arange(len(sigma[equal])))
        rows = with_values(rng, max(n, d + 1), np.sort(sigma)[::-1])
        if rng.random() < 0.7:
            options["n_components"] = int(min(d, at + 1 + rng.integers(0, 3)))
    elif kind == "equal eigenvalues":
        d = int(level)
        rows = np.vstack([np.eye(d), -np.eye(d)]) * rng.choice([1.0, 2.0, 3.0], d)
    elif kind == "share of the variance":
        rows = rng.uniform(-1, 1, d) + spread(rng, n, d)
        options["n_components"] = level or None
    elif kind == "samples":
        rows = rng.standard_normal((int(level), d)) + rng.choice([0.0, 1.0, 1e6])
        options["center"] = bool(level > 1 and rng.random() < 0.7)
        d = min(d, int(level))
    else:  # "zero columns", "constant columns"
        rows = spread(rng, n, d)
        rows[:, rng.permutation(d)[: min(int(level), d - 1)]] = (
            0.0 if kind == "zero columns" else 10.0 ** rng.integers(-3, 12)
        )
    clients: list[Any] = parts(rows, rng)
    if kind == "offset, sparse":
        clients = [scipy.sparse.csr_array(rows) for rows in clients]
    rank = min(len(rows), d)
    return Case(clients, {**asked(rng, rank), **options})


ROWS = {
    "offset": [10.0**k for k in range(16)],
    "offset, float32": [1.0, 1e3, 1e6],
    "offset, sparse": [1.0, 1e6, 1e12],
    "offset, scale=True": [1.0, 1e6, 1e12],
    "decades of spread": [2, 5, 8, 12],
    "scale": [1e-150, 1e-75, 1.0, 1e75, 1e150],
    "relative gap": [1e-1, 1e-3, 1e-6, 1e-8, 1e-9, 1e-11, 1e-13, 1e-15],
    "equal eigenvalues": [2, 5, 8],
    "share of the variance": [0, 0.5, 0.9, 0.999],
    "samples": [1, 2, 3],
    "zero columns": [1, 4],
    "constant columns": [1, 4],
}
ABOUT = (
    "`FederatedPCA.error_estimate_` is an estimate of the sine of the largest angle between the "
    "subspace found and the exact one. It is computed from the residual of the server's basis, and "
    "from an estimate of the gap between the last component's eigenvalue and the next one. It is "
    "not a proven bound: the true angle may be larger. `python tools/error_estimate.py` tests the "
    "estimate, and writes this page.",
    "Each row of the table tests fits to random samples of one kind, with one to four clients, "
    "methods that have a stopping test, and random numbers of components and tolerances. The exact "
    f"covariance is computed in whole numbers, and its eigenvectors with {DIGITS} digits. If the "
    "eigenvalue of the last component equals the next one, any direction of their eigenspace "
    "counts as right.",
    "`above` counts the fits whose true sine is above the estimate, and `largest ratio` is the "
    "largest ratio of the true sine to the estimate. `wrong` counts the fits whose `converged_` is "
    f"True although the ratio is above {ALLOWED:g}; there must be none.",
)
KINDS = {
    "offset": "each feature has a mean within ±`value` and a standard deviation from 0.1 to 1",
    "offset, float32": "samples as for **offset**, in single precision",
    "offset, sparse": "half of the entries are zeros, and `value` is added to some columns",
    "offset, scale=True": "samples as for **offset**; fits divide features by standard deviations",
    "decades of spread": "the features' standard deviations span `value` powers of ten",
    "scale": "all samples are multiplied by `value`",
    "relative gap": "two to four consecutive singular values differ relatively by `value`",
    "equal eigenvalues": "`value` features, each with one of three variances",
    "share of the variance": "`n_components` is `value`; 0 stands for None",
    "samples": "fits to `value` samples, also without centring",
    "zero columns": "`value` features are zero",
    "constant columns": "`value` features are constant",
}
LIMITS = (
    "The estimate is too small if all messages are orthogonal to a direction of the exact "
    "subspace, up to rounding. This hardly ever happens with a random start. A user's `start`, "
    "however, may be a wrong subspace that the covariance maps to itself. fedcore therefore adds "
    "random columns to the user's `start`, at least as many as components, which show the missing "
    "directions. With `n_oversamples=0` and a random start, there are no extra columns, and equal "
    "singular values are not noticed. A method without a stopping test (`converged_` is None) does "
    "not estimate the next singular value, and its error estimate tends to be too small."
)
PRIVATE = (
    "With `epsilon`, the estimate says how far the noise may have turned the subspace. It is "
    "the norm of the noise that mixes the components with other directions, divided by the gap of "
    "the released eigenvalues. The size of the noise and the eigenvalues are public, so the "
    "estimate costs no ε. It does not include the error of clipping to the bounds.",
    "If the noise may hide the gap, the estimate is 1 and says nothing: the components may be "
    "noise alone, although the true sine is often a third or a half. The server knows the gap from "
    f"released values only, and subtracts {private.MARGIN:g} standard deviations of the noise of "
    "these values from it. Without this margin, a fit to few samples would give an estimate below "
    "1 when noise alone has made a gap. Most such estimates would be wrong. With the margin, the "
    "true sine is above the estimate in at most one of 20 fits whose estimate is below 1. Each row "
    "of the next table is for one number of samples. The private fits of a row have one to three "
    "clients, two to twelve columns, a gap or none, ε from 0.3 to 10,000 and either private "
    "method, also with `scale=True` or without centring. `spoke` counts the fits whose estimate is "
    "below 1. `further off` counts how many of these fits have a true sine above the estimate. "
    "`ratio` is the median of the estimate divided by the true sine. An estimate above 0.5 gives a "
    "warning.",
    "The next table says how many patients bring the estimate to about 0.5, for two components of "
    f"eight columns, each with the range from -1 to 1, and δ = {DELTA:g}. `gap` is the variance "
    "along the second component less that along the third. The numbers are for one client; each of "
    "m clients adds noise, so √m times as many patients are needed. With `scale=True`, the numbers "
    "differ.",
)
SAMPLES = (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)  # of private fits
FITS = 100  # per row of their table
SHAPES = ("factors", "decay", "one direction", "flat")
GAPS, EPSILONS = (0.3, 0.1, 0.03, 0.01), (0.5, 1.0, 3.0)


def bounded(rng: np.random.Generator, n: int, d: int, shape: str) -> np.ndarray:
    """Return rows within [-1, 1], with three factors, a slow decay, one direction or none."""
    x = rng.standard_normal((n, d))
    if shape == "factors":
        x = rng.standard_normal((n, 3)) * [1.5, 1.0, 0.6] @ rng.standard_normal((3, d)) + 0.5 * x
    elif shape == "decay":
        x = x / np.arange(1, d + 1)
    elif shape == "one direction":
        x[:, 0] *= 5
    return np.clip(x / x.std(axis=0).max() / 4, -1, 1)


def with_noise(rng: np.random.Generator, n: int) -> Outcome:
    """Fit n random samples privately, and compare the estimate with the true sine."""
    d = int(rng.integers(2, 13))
    x, r = bounded(rng, n, d, str(rng.choice(SHAPES))), int(rng.integers(1, min(d, n, 4)))
    model = FederatedPCA(
        r, algorithm=str(rng.choice(["analyze_gauss", "noisy_power"])),
        scale=bool(rng.random() < 0.25), center=bool(rng.random() < 0.75),
        epsilon=10.0 ** rng.uniform(-0.5, 4), delta=DELTA, bounds=(-1.0, 1.0),
        params={"simulate": True}, random_state=int(rng.integers(1 << 30)),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(np.array_split(x, int(rng.integers(1, 4))))
    rows = (x - (x.mean(axis=0) if model.center else 0.0)) / model.scale_
    exact, found = np.linalg.svd(rows)[2][:r], model.components_
    sine = float(np.linalg.norm(found - found @ exact.T @ exact, 2))
    return Outcome(sine, model.error_estimate_, converged=False)


def private_row(n: int, fits: int) -> dict[str, Any]:
    """Return the row for n samples in the table of private fits."""
    rng = np.random.default_rng([n, fits])
    spoke = [one for one in (with_noise(rng, n) for _ in range(fits)) if one.estimate < 1]
    return {
        "samples": f"{n:,}",
        "fits": fits,
        "spoke": len(spoke),
        "further off": sum(one.ratio > 1 for one in spoke),
        "ratio": f"{1 / np.median([one.ratio for one in spoke]):.2g}" if spoke else "",
    }


def patients(gap: float, epsilon: float, *, d: int = 8, r: int = 2, estimate: float = 0.5) -> float:
    """Return the number of samples at which a private fit's median estimate is `estimate`."""
    asked: Any = SimpleNamespace(epsilon=epsilon, delta=DELTA, scale=False)
    z, rng = private.multipliers(asked), np.random.default_rng(0)
    first, last = symmetric(rng, d) * z["rounds"], symmetric(rng, r + 1) * z["last"]
    low, high = 1.0, 1e9
    while high / low > 1.001:
        n = np.sqrt(low * high)
        exact = np.diag(np.repeat([n * gap / d, 0.0], [r, d - r]))  # √d is the norm of a sample
        Z = np.linalg.eigh(exact + first)[1][:, :, : -r - 2 : -1]
        moments = Z.transpose(0, 2, 1) @ exact @ Z + last
        squares = np.linalg.eigvalsh(moments[:, :r, :r])[:, ::-1]
        found = [
            private.sines(np.append(own, next_), d, rounds=z["rounds"], last=z["last"], steps=0)[-1]
            for own, next_ in zip(squares, moments[:, r, r], strict=True)
        ]
        low, high = (n, high) if np.median(found) > estimate else (low, n)
    return high


def symmetric(rng: np.random.Generator, size: int, draws: int = 400) -> np.ndarray:
    """Return random symmetric matrices with standard normal entries, shape (draws, size, size)."""
    upper = np.triu(rng.standard_normal((draws, size, size)))
    return upper + np.triu(upper, 1).transpose(0, 2, 1)


def needed() -> list[dict[str, Any]]:
    """Return the table of the needed numbers of patients, rounded to two digits."""
    return [{"gap": f"{gap:g}", **{f"ε = {e:g}": f"{float(f'{patients(gap, e):.2g}'):,.0f}"
                                   for e in EPSILONS}} for gap in GAPS]  # fmt: skip


def outcomes(kind: str, level: float, draws: int, seed: int = 0) -> Iterator[Outcome]:
    """Yield the outcomes of `draws` random cases of a table row."""
    rng = np.random.default_rng([seed, list(ROWS).index(kind), ROWS[kind].index(level)])
    for _ in range(draws):
        yield outcome(drawn(kind, level, rng))


def row(kind: str, level: float, draws: int) -> dict[str, Any]:
    """Return the row of the table for one kind of samples and one value."""
    found = list(outcomes(kind, level, draws))
    ratios = [one.ratio for one in found]
    return {
        "samples": kind,
        "value": f"{level:g}",
        "fits": len(found),
        "converged": sum(one.converged for one in found),
        "above": sum(ratio > 1 for ratio in ratios),
        "largest ratio": f"{max(ratios):.2g}",
        "wrong": sum(one.wrong for one in found),
    }


def page(rows: Sequence[dict[str, Any]]) -> str:
    """Return the text of docs/error_estimate.md."""
    kinds = "\n".join(f"* **{kind}**: {text}." for kind, text in KINDS.items())
    parts = [
        "# How far the error estimate can be trusted", *ABOUT, kinds, tables.markdown(rows),
        "## Where it is too small", LIMITS, "## With differential privacy",
        *PRIVATE[:-1], tables.markdown([private_row(n, FITS) for n in SAMPLES]), PRIVATE[-1],
        tables.markdown(needed()),
    ]  # fmt: skip
    filled = [part if part[0] in "|*" else textwrap.fill(part, 99) for part in parts]
    return "\n\n".join(part.rstrip() for part in filled) + "\n"


def main() -> int:
    """Test all rows and write the page; return 1 if a fit is wrong, and otherwise 0."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    with threadpool_limits(1):
        rows = [row(kind, level, DRAWS) for kind, levels in ROWS.items() for level in levels]
        PAGE.write_text(page(rows), encoding="utf-8", newline="\n")
    return int(any(row["wrong"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())

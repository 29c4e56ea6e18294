"""A client's own axes: the same products, norms and results as in the features themselves."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg

import fedcore
from fedcore.parts import local_axes
from fedcore.parts.local_axes import coordinates

SIZES = {
    "more samples": (40, 12),
    "square": (12, 12),
    "fewer samples": (5, 12),
    "one sample": (1, 12),
}
P = 3


@pytest.fixture(autouse=True)
def products_count(monkeypatch):
    """Let products of few numbers count, as those of the tests are."""
    monkeypatch.setattr(local_axes, "CALL", 0)


def state() -> SimpleNamespace:
    return SimpleNamespace(kept=SimpleNamespace())


def basis(rng: np.random.Generator, d: int, dtype: type) -> np.ndarray:
    return np.linalg.qr(rng.standard_normal((d, P)))[0].astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["full rank", "repeated rows", "zero"])
def test_axes_keep_products_and_inner_products_over_rounds(size, kind, dtype):
    rng = np.random.default_rng(4)
    data = rng.standard_normal(SIZES[size]).astype(dtype)
    if kind != "full rank":
        data[:] = data[0] if kind == "repeated rows" else 0
    G = data.T.astype(float) @ data
    close = 200 * np.finfo(dtype).eps
    client, X = state(), basis(rng, 12, dtype)
    kept = X
    for _ in range(4):
        Z = basis(rng, 12, dtype)
        here = coordinates(data, client, kept, Z, columns=10**9)

        np.testing.assert_allclose(here.features(here.X), X, rtol=0, atol=close)
        np.testing.assert_allclose(here.features(here.Z), Z, rtol=0, atol=close)
        np.testing.assert_allclose(here.X.T @ here.Z, X.T @ Z, rtol=0, atol=close)
        image = here.features(here.multiply(here.X))
        np.testing.assert_allclose(image, G @ X, rtol=0, atol=close * max(np.trace(G), 1))
        # The next X is in the span of this round's blocks and images.
        moved = np.linalg.qr(here.multiply(here.X) + 2 * here.X - here.Z)[0].astype(dtype)
        X = np.linalg.qr(G @ X + 2 * X - Z)[0].astype(dtype)
        kept = here.kept(moved * np.sign(np.sum(here.features(moved) * X, axis=0)).astype(dtype))


def test_small_singular_values_leave_the_axes_orthonormal():
    """The Gram matrix of the rows would lose every direction below 1e-8."""
    rng = np.random.default_rng(5)
    data = (np.logspace(0, -14, 6)[:, None]) * np.linalg.qr(rng.standard_normal((20, 6)))[0].T
    Q, squares = local_axes.local_axes(data, state(), data.dtype)
    np.testing.assert_allclose(Q.T @ Q, np.eye(6), atol=1e-14)
    np.testing.assert_allclose(Q * squares @ Q.T, data.T @ data, atol=1e-15)


@pytest.mark.parametrize("n_samples", [4, 9, 60])
@pytest.mark.parametrize("solver", ["power", "ritz"])
def test_faps_is_the_same_along_axes(n_samples, solver, monkeypatch):
    rng = np.random.default_rng(6)
    start = scipy.linalg.orth(rng.standard_normal((9, 2)))
    shared = np.linalg.qr(rng.standard_normal((9, 9)))[0] * 0.6 ** np.arange(9)
    clients = [rng.standard_normal((n_samples, 9)) @ shared.T for _ in range(4)]
    options = {"rounds": 12, "start": start, "inner": "fixed", "inner_steps": 4, "solver": solver}

    def found(pays: bool) -> fedcore.Result:
        monkeypatch.setattr(local_axes, "axes_pay_off", lambda n, d, columns: pays)
        return fedcore.run("faps", clients, 2, measure=("objective",), **options)

    plain, along = found(False), found(True)
    for name in ("round", "bytes_up", "inner_products"):
        np.testing.assert_array_equal(along.history[name], plain.history[name])
    np.testing.assert_allclose(along.history["penalty"], plain.history["penalty"], rtol=1e-12)
    # Rounding in the first round may be amplified; see `fedcore.algorithms.faps`.
    np.testing.assert_allclose(along.history["objective"], plain.history["objective"], rtol=1e-8)
    for name in ("X", "W"):
        for one, other in zip(along.output[name], plain.output[name], strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)

"""FederatedPCA with its defaults against scikit-learn's PCA on the pooled data."""

from __future__ import annotations

import numpy as np
import pytest

import fedcore

sklearn_datasets = pytest.importorskip("sklearn.datasets")
PCA = pytest.importorskip("sklearn.decomposition").PCA

CLOSE = 1e-6  # what the estimator promises with its default tolerance


def spectrum(number: int) -> np.ndarray:
    """One of ten matrices with drawn sizes, decay and mean."""
    rng = np.random.default_rng([20240, number])
    n, d = int(rng.integers(60, 400)), int(rng.integers(5, 60))
    k = np.arange(min(n, d))
    decays = (0.8**k, 0.95**k, 1 / (k + 1), np.exp(-np.sqrt(k)), np.linspace(3, 1, len(k)))
    sigma = decays[number % 5] * 10.0 ** rng.integers(-3, 4)
    left = np.linalg.qr(rng.standard_normal((n, len(k))))[0]
    right = np.linalg.qr(rng.standard_normal((d, len(k))))[0]
    return (left * sigma) @ right.T + sigma[0] * rng.standard_normal(d)


DATA = {
    **{name: lambda name=name: getattr(sklearn_datasets, f"load_{name}")().data
       for name in ("iris", "wine", "breast_cancer", "digits")},
    **{f"spectrum {i}": lambda i=i: spectrum(i) for i in range(10)},
}  # fmt: skip


def splits(n: int) -> dict[str, list[int]]:
    """Where to cut n samples."""
    return {
        "one client": [],
        "two": [n // 3],
        "ten": [n * i // 10 for i in range(1, 10)],
        "single samples": [1, 2, 3, n - 1],
    }


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("split", splits(0))
def test_the_default_is_the_pca_of_the_pooled_data(name, split):
    X = DATA[name]()
    for r in {1, 2, min(4, X.shape[1]), X.shape[1] // 2}:
        clients = np.split(X, splits(len(X))[split])
        ours = fedcore.FederatedPCA(r).fit(clients)
        theirs = PCA(r, svd_solver="full").fit(X)
        assert ours.converged_
        np.testing.assert_allclose(ours.components_, theirs.components_, rtol=0, atol=CLOSE)
        for name_of in (
            "singular_values_", "explained_variance_", "explained_variance_ratio_"
        ):  # fmt: skip
            np.testing.assert_allclose(
                getattr(ours, name_of), getattr(theirs, name_of), rtol=CLOSE, err_msg=name_of
            )
        scale = np.abs(X).max()
        np.testing.assert_allclose(ours.mean_, theirs.mean_, rtol=0, atol=1e-12 * scale)
        np.testing.assert_allclose(
            ours.transform(X), theirs.transform(X), rtol=0, atol=CLOSE * scale * X.shape[1]
        )
        np.testing.assert_allclose(
            ours.inverse_transform(ours.transform(X)),
            theirs.inverse_transform(theirs.transform(X)),
            rtol=0, atol=CLOSE * scale * X.shape[1],
        )  # fmt: skip


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits"])
def test_without_centring_it_is_truncated_svd(name):
    X = DATA[name]()
    svd = pytest.importorskip("sklearn.decomposition").TruncatedSVD(2, algorithm="arpack").fit(X)
    ours = fedcore.FederatedPCA(2, center=False).fit(np.array_split(X, 5))
    aligned = np.sign(np.sum(svd.components_ * ours.components_, axis=1))[:, None]
    np.testing.assert_allclose(ours.components_, aligned * svd.components_, rtol=0, atol=CLOSE)
    np.testing.assert_allclose(ours.singular_values_, svd.singular_values_, rtol=CLOSE)
    np.testing.assert_array_equal(ours.mean_, 0)

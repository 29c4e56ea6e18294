"""Clients as a list, by names, by groups, in single precision, sparse; names in errors."""

from __future__ import annotations

import numpy as np
import polars
import pytest
import scipy.sparse

from fedcore.estimators import FederatedPCA


@pytest.fixture
def S(matrix_with):
    return 3.0 + matrix_with(60, 8, 0.5 ** np.arange(8), seed=7)


GROUPS = np.array(["north", "south", "east"])[np.arange(60) % 3]


def parts_of(S):
    return [S[name == GROUPS] for name in ("east", "north", "south")]


def test_groups_are_clients_in_sorted_order(S):
    one, other = FederatedPCA(2).fit(S, groups=GROUPS), FederatedPCA(2).fit(parts_of(S))
    np.testing.assert_array_equal(one.components_, other.components_)
    assert one.ledger_ == other.ledger_ and one.ledger_.scalars_up % 3 == 0
    pooled = FederatedPCA(2).fit(S)  # one matrix is one client
    assert pooled.ledger_.scalars_up * 3 == one.ledger_.scalars_up
    np.testing.assert_allclose(pooled.components_, one.components_, atol=1e-7)


def test_fit_transform_keeps_the_rows_in_their_order(S):
    pca = FederatedPCA(2)
    scores = pca.fit_transform(S, groups=GROUPS)
    np.testing.assert_array_equal(scores, pca.transform(S))
    each = pca.fit_transform(parts_of(S))
    np.testing.assert_array_equal(each[1], pca.transform(S[GROUPS == "north"]))
    assert [len(part) for part in each] == [20, 20, 20]


@pytest.mark.parametrize("scale", [False, True])
def test_single_precision_is_kept_and_sums_are_double(S, scale):
    single = [(1000 + part).astype(np.float32) for part in parts_of(S)]
    pca = FederatedPCA(3, scale=scale).fit(single)
    exact = FederatedPCA(3, scale=scale).fit([part.astype(np.float64) for part in single])
    scores = pca.transform(single[0])
    assert scores.dtype == np.float32 and pca.inverse_transform(scores).dtype == np.float32
    np.testing.assert_allclose(pca.mean_, exact.mean_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(pca.scale_, exact.scale_, rtol=1e-6)
    # A 48th of the squares is left out, which feels the rounding of all of them.
    for name in ("explained_variance_", "noise_variance_", "explained_variance_ratio_"):
        rounding = 48 * np.finfo(np.float32).eps
        np.testing.assert_allclose(getattr(pca, name), getattr(exact, name), rtol=rounding)
    # A mean rounded to single precision would be off by 3e-5, 1e-4 of the smaller features.
    np.testing.assert_allclose(
        pca.transform(single[0]).mean(axis=0),
        exact.transform(single[0].astype(float)).mean(axis=0),
        atol=1e-5,
    )


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("kind", ["csr_array", "coo_matrix", "dok_array", "lil_array"])
def test_sparse_clients_give_what_dense_ones_give(center, scale, kind):
    kind = getattr(scipy.sparse, kind)
    A = scipy.sparse.random_array((90, 15), density=0.2, rng=np.random.default_rng(1))
    dense = A.toarray()
    expected = FederatedPCA(3, center=center, scale=scale).fit(np.split(dense, [30, 50]))
    rows = kind(A)
    parts = [A.tocsr()[rows] for rows in (slice(30), slice(30, 50), slice(50, 90))]
    pca = FederatedPCA(3, center=center, scale=scale).fit([kind(part) for part in parts])
    scores, found = pca.transform(rows), pca
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-7)
    np.testing.assert_allclose(scores, expected.transform(dense), atol=1e-6)
    for name in ("explained_variance_", "explained_variance_ratio_", "noise_variance_", "scale_"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9)
    np.testing.assert_allclose(found.score(rows), expected.score(dense), rtol=1e-9)
    grouped = FederatedPCA(3, center=center, scale=scale).fit(rows, groups=np.arange(90) // 30)
    np.testing.assert_allclose(grouped.components_, expected.components_, atol=1e-7)


def test_the_scale_is_that_of_the_pooled_data_and_on_the_ledger(S):
    S = np.column_stack([S, np.full(len(S), 7.0)])
    plain, pca = (FederatedPCA(2, scale=scale).fit(S, groups=GROUPS) for scale in (False, True))
    np.testing.assert_allclose(pca.scale_, [*S[:, :-1].std(axis=0), 1.0], rtol=1e-12)
    np.testing.assert_allclose(pca.inverse_transform(pca.transform(S)).shape, S.shape)
    assert pca.transform(S).mean() == pytest.approx(0, abs=1e-12)
    rounds = pca.ledger_.rounds - plain.ledger_.rounds - (pca.n_iter_ - plain.n_iter_)
    assert rounds == 1
    per_round = 3 * 9 * 3  # clients, features, components and one more
    for way in ("scalars_up", "scalars_down"):
        more = getattr(pca.ledger_, way) - getattr(plain.ledger_, way)
        assert more - (pca.n_iter_ - plain.n_iter_) * per_round == 3 * 9, way
    assert pca.history_["round"][0] == plain.history_["round"][0] + 1
    second = FederatedPCA(2, scale=True, center=False).fit(S, groups=GROUPS)
    np.testing.assert_allclose(second.scale_, np.sqrt(np.mean(S**2, axis=0)), rtol=1e-12)


def test_what_shares_and_none_cost(S):
    d, clients = S.shape[1], 3
    for n_components in (None, 0.9):
        pca = FederatedPCA(n_components).fit(S, groups=GROUPS)
        mean, products, last = d + 2, d * d, d * d + 1
        assert pca.ledger_.rounds == 3
        assert pca.ledger_.scalars_up == clients * (mean + products + last)


def test_a_frame_of_polars_is_one_matrix_with_names(S):
    frame = polars.DataFrame(S, schema=list("abcdefgh"))
    for options in ({}, {"groups": GROUPS}):
        found = FederatedPCA(2).fit(frame, **options)
        assert list(found.feature_names_in_) == list("abcdefgh")
        np.testing.assert_array_equal(
            found.components_, FederatedPCA(2).fit(S, **options).components_
        )

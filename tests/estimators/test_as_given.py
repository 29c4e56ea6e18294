"""Clients as a list, by names, by groups, in single precision, sparse; names in errors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from fedcore.errors import InputError
from fedcore.estimators import FederatedPCA, exact_fit, extra_rounds


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


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        ("ward", r"groups is the text 'ward': give the column itself, frame\['ward'\]"),
        (GROUPS[:5], r"groups has shape \(5,\), and the matrix has 60 rows"),
        (np.where(np.arange(60) == 3, np.nan, 1.0), "missing value"),
        ([None, "a"] * 30, "missing value"),
    ],
)
def test_groups_that_do_not_fit_are_refused(S, groups, says):
    with pytest.raises(InputError, match=says):
        FederatedPCA(2).fit(S, groups=groups)
    with pytest.raises(InputError, match="goes with one matrix"):
        FederatedPCA(2).fit(parts_of(S), groups=GROUPS)


def test_errors_name_clients_and_columns(S):
    pandas = pytest.importorskip("pandas")
    columns = ["age", *"bcdefgh"]
    frames = {f"{name}.csv": pandas.DataFrame(part, columns=columns)
              for name, part in zip("abc", parts_of(S), strict=True)}  # fmt: skip
    FederatedPCA(2).fit(frames)
    frames["c.csv"].loc[4, "age"] = np.nan
    with pytest.raises(InputError, match=r"^client 2 \('c.csv'\): .*row 4") as told:
        FederatedPCA(2).fit(frames)
    assert told.value.column == "age"
    whole = pandas.DataFrame(S, columns=columns)
    whole.loc[7, "b"] = np.inf  # the third of the last group
    with pytest.raises(InputError, match=r"^client 2 \('south'\) has inf at row 7, column 'b'"):
        FederatedPCA(2).fit(whole, groups=GROUPS)
    pca = FederatedPCA(2).fit(pandas.DataFrame(S, columns=columns), groups=GROUPS)
    with pytest.raises(InputError, match=r"^x has inf at row 7, column 'b'"):
        pca.transform(whole)
    with pytest.raises(InputError, match=r"^x has no column 'c', which the fitted estimator has"):
        pca.transform(whole.drop(columns=["c", "d"]))
    with pytest.raises(InputError, match=r"^x has a column 'z', which the fitted estimator has no"):
        pca.transform(whole.assign(z=1.0))
    less = frames | {"b.csv": frames["b.csv"].drop(columns="c")}
    for given, found in [(less, "has no"), (dict(reversed(less.items())), "has no"),
                         ({"b.csv": less["b.csv"], "a.csv": less["a.csv"]}, "has a")]:  # fmt: skip
        with pytest.raises(InputError, match=rf"^client 1 \('\w\.csv'\) {found} column 'c', which"):
            FederatedPCA(2).fit(given)
    other = {name: frame.rename(columns={"age": "years"}) if name == "b.csv" else frame
             for name, frame in frames.items()}  # fmt: skip
    with pytest.raises(InputError, match=r"^client 1 \('b.csv'\) has no column 'age', which clie"):
        FederatedPCA(2).fit(other)


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


def test_the_sums_of_the_last_round_are_double():
    """Z are unit vectors, so that the scores are exact and the sums alone can round."""
    data = np.random.default_rng(0).standard_normal((40_000, 4)).astype(np.float32)
    double = data.astype(np.float64)
    for step in (extra_rounds.moments, extra_rounds.moments_and_products):
        found = step(data, None, np.eye(4, 2, dtype=np.float32))
        assert found.dtype == np.float64
        inside = double[:, :2].T @ double[:, :2]
        # 4e4 terms, each rounded once: 1e-16 times 2e2; in single precision 1e-7 and more.
        np.testing.assert_allclose(found[:4].reshape(2, 2), inside, rtol=1e-13, atol=1e-9)
        np.testing.assert_allclose(found[4], np.sum(double[:, 2:] ** 2), rtol=1e-12)
    squares = extra_rounds.squares_of_features(data)
    np.testing.assert_allclose(squares, np.sum(double**2, axis=0), rtol=1e-13)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.coo_matrix])
def test_sparse_clients_give_what_dense_ones_give(center, scale, kind, monkeypatch):
    A = scipy.sparse.random_array((90, 15), density=0.2, rng=np.random.default_rng(1))
    dense = A.toarray()
    expected = FederatedPCA(3, center=center, scale=scale).fit(np.split(dense, [30, 50]))
    rows = kind(A)
    for part in (scipy.sparse.csr_array, scipy.sparse.coo_matrix):
        real = part.toarray

        def small_only(self, *args, real=real, **options):  # one row, or a matrix of d × d
            return real(self, *args, **options) if self.shape[0] < 20 else pytest.fail("dense copy")

        monkeypatch.setattr(part, "toarray", small_only)
    parts = [A.tocsr()[rows] for rows in (slice(30), slice(30, 50), slice(50, 90))]
    pca = FederatedPCA(3, center=center, scale=scale).fit([kind(part) for part in parts])
    scores, found = pca.transform(rows), pca
    monkeypatch.undo()
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


def test_a_share_that_is_reached_exactly_takes_one_more_as_in_scikit_learn():
    axes = extra_rounds.Axes(np.eye(4), np.array([4.0, 2.0, 1.0, 1.0]))
    for share, r in ((0.5, 2), (0.49, 1), (0.75, 3), (0.76, 3), (0.99, 4)):
        kept, outside = exact_fit._with_share(axes, 0.0, share)
        assert len(kept.squares) == len(kept.components) == r
        assert outside == axes.squares[r:].sum()


def test_what_shares_and_none_cost(S):
    d, clients = S.shape[1], 3
    for n_components in (None, 0.9):
        pca = FederatedPCA(n_components).fit(S, groups=GROUPS)
        mean, products, last = d + 2, d * d, d * d + 1
        assert pca.ledger_.rounds == 3
        assert pca.ledger_.scalars_up == clients * (mean + products + last)


@pytest.mark.parametrize("clients", [[], {}, (), np.empty((0, 4, 3))], ids=repr)
def test_no_clients_are_refused(clients):
    with pytest.raises(InputError, match="there are no clients: fit takes at least one matrix"):
        FederatedPCA(2).fit(clients)


@pytest.mark.parametrize("form", [np.array, scipy.sparse.csr_array])
def test_errors_name_the_row_of_the_matrix_that_was_given(S, form):
    bad = S.copy()
    bad[40, 3] = np.nan  # the 14th of its group
    with pytest.raises(InputError, match=r"^client 2 \('south'\) has nan at row 40, feature 3$"):
        FederatedPCA(2).fit(form(bad), groups=GROUPS)
    listed = [bad[::3], bad[1::3], bad[2::3]]  # without groups it is the client's own row
    with pytest.raises(InputError, match=r"^client 1 has nan at row 13, feature 3$"):
        FederatedPCA(2).fit(listed)


class Frame:
    """What fit needs of a data frame of polars, which has a shape and no ``ndim``."""

    def __init__(self, x):
        self.x, self.columns, self.shape = x, list("abcdefgh"), x.shape

    def __array__(self, dtype=None, copy=None):
        return self.x

    def __getitem__(self, rows):
        return Frame(self.x[rows])

    def __len__(self):
        return len(self.x)


def test_a_data_frame_without_ndim_is_one_matrix_with_names(S):
    for options in ({}, {"groups": GROUPS}):
        found = FederatedPCA(2).fit(Frame(S), **options)
        assert list(found.feature_names_in_) == list("abcdefgh")
        np.testing.assert_array_equal(
            found.components_, FederatedPCA(2).fit(S, **options).components_
        )

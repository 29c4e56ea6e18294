"""Labels of data follow one rule in every method: they are matched, or the data are refused."""

from __future__ import annotations

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV

from fedcore.errors import InputError
from fedcore.estimators import FederatedPCA
from refused import refused

D, R = 5, 2
X = 3.0 + np.random.default_rng(3).standard_normal((40, D)) * np.arange(1.0, D + 1)
PARTS = [X[:15], X[15:]]
LABELS = {
    "text": list("cabed"),
    "numbers": [9, 4, 6, 2, 7],
    "positions": [0, 1, 2, 3, 4],
    "mixed": ["age", 3, ("a", 1), 2.5, "0"],
}
FRAMES = {
    "pandas": lambda values, names: pandas.DataFrame(
        values, columns=pandas.Index(names, tupleize_cols=False)
    ),
    "polars": lambda values, names: polars.DataFrame(values, schema=[*map(str, names)]),
    "arrow": lambda values, names: pyarrow.table(dict(zip(map(str, names), values.T, strict=True))),
}  # fmt: skip
METHODS = {
    "transform": lambda model, x: model.transform(x),
    "score_samples": lambda model, x: model.score_samples(x),
    "score": lambda model, x: model.score(x),
    "score of clients": lambda model, x: model.score([x, x]),
    "inverse_transform": lambda model, x: model.inverse_transform(x),
}


def fitted(make, names):
    return FederatedPCA(R).fit([make(part, names) for part in PARTS])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", FRAMES)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_method_matches_by_label_or_refuses(kind, method, data):
    make, call = FRAMES[kind], METHODS[method]
    names = LABELS[data.draw(st.sampled_from([*LABELS]))]
    back = method == "inverse_transform"
    model, values = fitted(make, names), X
    if back:
        values = model.transform(X)
        names = data.draw(st.sampled_from([model.get_feature_names_out().tolist(), [0, 1]]))
        names = names if kind == "pandas" else model.get_feature_names_out().tolist()
    expected = call(model, values)
    order = data.draw(st.permutations(range(len(names))))
    permuted = [names[i] for i in order]
    np.testing.assert_array_equal(call(model, make(values[:, order], permuted)), expected)
    other = data.draw(st.integers(0, len(names) - 1))
    for columns, called in (
        (order[:-1], permuted[:-1]),
        ([*order, 0], [*permuted, "more"]),
        (order, [*permuted[:other], "other", *permuted[other + 1:]]),
    ):  # fmt: skip
        with pytest.raises(InputError):
            call(model, make(values[:, columns], called))
    refused(lambda: call(model, pandas.Series(values[0], index=names)), InputError)


@pytest.mark.parametrize("method", [*METHODS][:-1])
@pytest.mark.parametrize("kind", FRAMES)
def test_names_that_the_fit_has_none_of_are_refused_and_numbers_are_positions(kind, method):
    model, call = FederatedPCA(R).fit(PARTS), METHODS[method]
    for names in LABELS.values():
        if names != LABELS["positions"] or kind != "pandas":
            with pytest.raises(InputError, match="has none"):
                call(model, FRAMES[kind](X, names))
    order = [3, 0, 4, 1, 2]
    numbered = pandas.DataFrame(X[:, order], columns=order)
    np.testing.assert_array_equal(call(model, numbered), call(model, X))


@pytest.mark.parametrize("names", LABELS.values(), ids=LABELS)
def test_clients_in_other_orders_have_the_scores_of_their_own_columns(names):
    make, order = FRAMES["pandas"], [4, 2, 0, 3, 1]
    clients = [make(PARTS[0], names), make(PARTS[1][:, order], [names[i] for i in order])]
    model = FederatedPCA(R)
    plain = FederatedPCA(R)
    for found, expected in zip(model.fit_transform(clients), plain.fit_transform(PARTS),
                               strict=True):  # fmt: skip
        np.testing.assert_array_equal(found, expected)
    whole = make(X[:, order], [names[i] for i in order])
    groups = pandas.Series(np.arange(40) % 2, index=whole.index).sample(frac=1, random_state=0)
    scores = model.fit_transform(whole, groups=groups)
    np.testing.assert_array_equal(scores, model.transform(whole))
    twice = whole.set_axis([*range(20)] * 2)
    again = model.fit_transform(
        twice, groups=pandas.Series(groups.sort_index().to_numpy(), twice.index)
    )
    np.testing.assert_array_equal(again, scores)
    assert model.get_feature_names_out([names[i] for i in order]).shape == (R,)
    refused(lambda: model.get_feature_names_out(names), InputError)


def test_a_score_of_clients_is_that_of_all_their_samples_and_a_search_chooses_by_it():
    model = FederatedPCA(R).fit(PARTS)
    expected = model.score(X)
    objects = np.fromiter(PARTS, object, len(PARTS))
    for several in (
        PARTS, tuple(PARTS), dict(zip("ab", PARTS, strict=True)), X.reshape(4, 10, D), objects,
        pandas.Series(objects), [part.tolist() for part in PARTS], X.reshape(4, 10, D).tolist(),
    ):  # fmt: skip
        assert model.score(several) == pytest.approx(expected, rel=1e-12)
    refused(lambda: model.score({}), InputError, "no clients")
    rng, sizes = np.random.default_rng(0), [1, 2, 3, 4]
    clients = [rng.standard_normal((n, 6)) * [9, 5, 3, 0.5, 0.4, 0.3] for n in (40, 60, 80, 30, 50)]
    pooled = [
        np.mean([
            PCA(r).fit(np.vstack(clients[:i] + clients[i + 1 :])).score(clients[i])
            for i in range(5)
        ])
        for r in sizes
    ]  # fmt: skip
    forms = {
        "frames": [pandas.DataFrame(c).add_prefix("f") for c in clients],
        "arrays": clients,
        "objects": np.fromiter(clients, object, 5),
        "lists": [c.tolist() for c in clients],
    }
    for given_ in forms.values():
        grid = GridSearchCV(FederatedPCA(), {"n_components": sizes}, error_score="raise")
        found = grid.fit(given_).cv_results_["mean_test_score"]
        np.testing.assert_allclose(found, pooled, rtol=1e-9)


@pytest.mark.parametrize("form", [list, tuple, lambda parts: dict(zip("ab", parts, strict=True))])
@pytest.mark.parametrize("method", ["transform", "score_samples", "inverse_transform"])
def test_clients_where_one_matrix_is_taken_are_refused(form, method):
    model = FederatedPCA(R).fit(PARTS)
    for make in (lambda x: x, pandas.DataFrame, polars.DataFrame):
        with pytest.raises(InputError, match=rf"model\.{method}\(c\) for c in clients"):
            getattr(model, method)(form([make(part) for part in PARTS]))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.one_of(st.integers(-99, 99), st.floats(-9, 9), st.booleans(),
                                   st.decimals(-9, 9)), min_size=3, max_size=3),
                min_size=4, max_size=4))  # fmt: skip
def test_objects_that_are_numbers_are_taken_bare_as_in_a_frame(rows):
    objects = np.array(rows, dtype=object)
    numbers = objects.astype(float) + np.diag([100.0, 10.0, 1.0, 0.0])[:, :3]
    objects = objects + np.diag([100, 10, 1, 0])[:, :3]
    model = FederatedPCA(1).fit([numbers])
    for form in (objects, pandas.DataFrame(objects)):
        own = FederatedPCA(1).fit([form])
        np.testing.assert_allclose(own.components_, model.components_, atol=1e-7)
        np.testing.assert_allclose(own.transform(form), own.transform(numbers), atol=1e-9)
    for bad in ("a", None):
        wrong = objects.copy()
        wrong[1, 2] = bad
        for form in (wrong, pandas.DataFrame(wrong)):
            with pytest.raises(InputError):
                model.transform(form)

"""Arguments per feature, client and row in every container: matched by label, or refused."""

from __future__ import annotations

import array
import collections
from decimal import Decimal

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import fedcore
from fedcore.datasets import partition
from fedcore.errors import InputError
from fedcore.estimators import FederatedPCA
from fedcore.problems.clients import Clients
from fedcore.user_tables import labelled
from refused import refused

pandas, polars, pyarrow, xarray = map(
    pytest.importorskip, ("pandas", "polars", "pyarrow", "xarray")
)

NAMES = ["age", "bmi", "glucose", "pulse"]
D, N = len(NAMES), 24
rng = np.random.default_rng(7)
X = rng.standard_normal((N, D)) @ np.diag([4.0, 3.0, 2.0, 1.0])
FRAME = pandas.DataFrame(X, columns=NAMES, index=[f"p{i}" for i in range(N)])
CLIENTS = {"north": FRAME.iloc[:8], "south": FRAME.iloc[8:16], "west": FRAME.iloc[16:]}
LOW, HIGH = np.array([-20.0, -15, -10, -5]), np.array([20.0, 15, 10, 6])
START = np.linalg.qr(rng.standard_normal((D, 2)))[0]
Y = X @ [1.0, -2.0, 0.5, 3.0]
SITES = np.repeat(["a", "b", "c"], 8)


# Containers of one value per label: with labels, which may be permuted, and without.
VECTORS = {
    "dict": (True, lambda labels, values: dict(zip(labels, values, strict=True))),
    "Series": (True, lambda labels, values: pandas.Series(list(values), index=labels)),
    "categorical": (
        True, lambda labels, values: pandas.Series(
            pandas.Categorical(list(values)), index=labels
        ).astype(np.asarray(values).dtype),
    ),
    "list": (False, lambda labels, values: list(values)),
    "tuple": (False, lambda labels, values: tuple(values)),
    "array": (False, lambda labels, values: np.asarray(values)),
    "default index": (False, lambda labels, values: pandas.Series(list(values))),
    "Index": (False, lambda labels, values: pandas.Index(list(values))),
    "masked": (False, lambda labels, values: np.ma.array(values)),
    "deque": (False, lambda labels, values: collections.deque(values)),
    "polars": (False, lambda labels, values: polars.Series(list(values))),
    "Arrow": (False, lambda labels, values: pyarrow.array(list(values))),
    "chunked": (False, lambda labels, values: pyarrow.chunked_array([list(values)])),
}  # fmt: skip
# Containers of a (rows, labels) table, the labels as columns.
TABLES = {
    "pandas": lambda labels, values: pandas.DataFrame(values, columns=labels),
    "polars": lambda labels, values: polars.DataFrame(values, schema=labels),
    "Arrow": lambda labels, values: pyarrow.table(dict(zip(labels, values.T, strict=True))),
}


def private(clients=CLIENTS, **asked):
    pca = FederatedPCA(
        2, epsilon=5.0, delta=1e-5, params={"simulate": True}, random_state=3, **asked
    )
    return pca.fit(clients)


# Each argument: what takes it, with values in the order of `labels`, and one number of the answer.
def bounds(make, order, labels=NAMES):
    given = [make([labels[i] for i in order], end[order]) for end in (LOW, HIGH)]
    return private(bounds=tuple(given)).components_


def start(make, order, labels=NAMES):
    given = make([labels[i] for i in order], START[order])
    return fedcore.run("ssi", CLIENTS, 2, start=given, rounds=2, tol=0).components


def start_of_pca(make, order, labels=NAMES):
    given = make([labels[i] for i in order], START[order])
    params = {"start": given, "rounds": 2}
    return FederatedPCA(2, algorithm="ssi", tol=0, params=params).fit(CLIENTS).components_


def groups(make, order, labels=tuple(FRAME.index)):
    pca = FederatedPCA(2).fit(FRAME, groups=make([labels[i] for i in order], SITES[order]))
    return np.append(pca.ledger_.bytes_up, pca.history_["bytes_up"])


def labels_of_a_client(make, order, labels=tuple(FRAME.index[:8])):
    y = [make([labels[i] for i in order], Y[:8][order]), Y[8:16], Y[16:]]
    return fedcore.run("fedrep_linear", CLIENTS, 2, labels=y, rounds=3).components


VECTOR_ARGUMENTS = {
    "bounds": (bounds, NAMES), "groups": (groups, list(FRAME.index)),
    "labels_of_a_client": (labels_of_a_client, list(FRAME.index[:8])),
}  # fmt: skip
TABLE_ARGUMENTS = {call.__name__: call for call in (start, start_of_pca)}
PLAIN = VECTORS["array"][1]


@pytest.mark.parametrize("container", VECTORS)
def test_labels_are_matched_and_a_position_counts_only_without_them(container):
    has_labels, make = VECTORS[container]
    for call, labels in VECTOR_ARGUMENTS.values():
        here, shuffled = np.arange(len(labels)), np.random.default_rng(1).permutation(len(labels))
        expected = call(PLAIN, here)
        np.testing.assert_array_equal(call(make, here), expected)
        if has_labels:
            np.testing.assert_array_equal(call(make, shuffled), expected)


WRONG_LABELS = {
    "renamed": lambda labels: [labels[0], "another", *labels[2:]],
    "unnamed": lambda labels: [labels[0], None, *labels[2:]],
    "less": lambda labels: labels[:-1],
    "more": lambda labels: [*labels, "another"],
    "twice": lambda labels: [labels[0], labels[0], *labels[2:]],
}


@pytest.mark.parametrize("wrong", WRONG_LABELS)
def test_labels_that_are_not_there_are_refused(wrong):
    for container, (has_labels, make) in VECTORS.items():
        for call, labels in VECTOR_ARGUMENTS.values():
            own = WRONG_LABELS[wrong](list(labels))

            def changed(_, values, own=own, make=make):
                return make(own, np.resize(values, len(own)))

            if has_labels and (container, wrong) != ("dict", "twice"):
                with pytest.raises(InputError):
                    call(changed, np.arange(len(labels)))


@pytest.mark.parametrize("argument", TABLE_ARGUMENTS)
def test_a_start_is_matched_by_its_index_or_its_columns(argument):
    call = TABLE_ARGUMENTS[argument]
    here, shuffled = np.arange(D), np.array([2, 0, 3, 1])
    expected = call(lambda own, values: values, here)
    for order in (here, shuffled):
        for make in (
            lambda own, values: pandas.DataFrame(values, index=own),
            lambda own, values: pandas.DataFrame(values.T, columns=own),
            lambda own, values: dict(zip(own, values, strict=True)),
        ):
            np.testing.assert_array_equal(call(make, order), expected)
    with pytest.raises(InputError, match="name its rows"):
        call(lambda own, values: pandas.DataFrame(values, index=[*own[1:], "other"]), here)


@pytest.mark.parametrize("container", TABLES)
def test_bounds_may_be_a_table_with_the_features_as_columns(container):
    expected = private(bounds=(LOW, HIGH)).components_
    for order in (np.arange(D), np.array([2, 0, 3, 1])):
        names = [NAMES[i] for i in order]
        table = TABLES[container](names, np.stack([LOW, HIGH])[:, order])
        np.testing.assert_array_equal(private(bounds=table).components_, expected)
        with pytest.raises(InputError):
            other = [*names[1:], "other"]
            private(bounds=TABLES[container](other, np.stack([LOW, HIGH])[:, order]))
    pairs = {name: (low, high) for name, low, high in zip(NAMES, LOW, HIGH, strict=True)}
    for asked in (pairs, dict(reversed(pairs.items())), pandas.DataFrame(pairs).T,
                  FRAME.agg(["min", "max"]) * 0 + np.stack([LOW, HIGH])):  # fmt: skip
        np.testing.assert_array_equal(private(bounds=asked).components_, expected)
    for without in (np.stack([LOW, HIGH]), [LOW, HIGH], [list(LOW), list(HIGH)]):
        np.testing.assert_array_equal(private(bounds=without).components_, expected)


@pytest.mark.parametrize("container", TABLES)
@settings(max_examples=8, deadline=None)
@given(order=st.permutations(range(D)))
def test_columns_of_clients_and_of_what_is_transformed_are_matched(container, order):
    make, names = TABLES[container], [NAMES[i] for i in order]
    clients = [make(NAMES, X[:12]), make(names, X[12:][:, order])]
    plain = FederatedPCA(2).fit([X[:12], X[12:]])
    pca = FederatedPCA(2).fit(clients)
    np.testing.assert_array_equal(pca.components_, plain.components_)
    assert pca.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(pca.transform(clients[1]), plain.transform(X[12:]))
    ran = [fedcore.run("ssi", given, 2).components for given in (clients, [X[:12], X[12:]])]
    np.testing.assert_array_equal(*ran)
    with pytest.raises(InputError):
        FederatedPCA(2).fit([clients[0], make([*names[1:], "other"], X[12:])])


@settings(max_examples=8, deadline=None)
@given(order=st.permutations(range(3)))
def test_labels_by_name_are_those_of_the_client(order):
    names = list(CLIENTS)
    y = dict(zip(names, (Y[:8], Y[8:16], Y[16:]), strict=True))
    shuffled = {names[i]: y[names[i]] for i in order}

    def call(y):
        return fedcore.run("fedrep_linear", CLIENTS, 2, labels=y, rounds=3).components

    expected = call(list(y.values()))
    np.testing.assert_array_equal(call(shuffled), expected)
    by_series = pandas.Series(list(shuffled.values()), index=list(shuffled))
    np.testing.assert_array_equal(call(by_series), expected)
    for wrong in (
        {**y, "other": Y[:8]}, {"north": Y[:8]}, dict(zip("abc", y.values(), strict=True)),
    ):  # fmt: skip
        with pytest.raises(InputError):
            call(wrong)
    with pytest.raises(InputError):
        fedcore.run("fedrep_linear", list(CLIENTS.values()), 2, labels=y, rounds=3)


def test_run_takes_clients_by_name_and_names_them():
    listed = fedcore.run("ssi", list(CLIENTS.values()), 2)
    named = fedcore.run("ssi", CLIENTS, 2)
    np.testing.assert_array_equal(named.components, listed.components)
    broken = {**CLIENTS, "west": CLIENTS["west"] * np.nan}
    refused(lambda: fedcore.run("ssi", broken, 2), InputError, "west")


MISSING = {
    "None": None, "nan": float("nan"), "numpy": np.float64("nan"), "NA": pandas.NA,
    "NaT": pandas.NaT, "numpy NaT": np.datetime64("NaT"), "Decimal": Decimal("NaN"),
    "signalling": Decimal("sNaN"), "masked": np.ma.masked,
}  # fmt: skip


def with_none(argument, container, missing, kind):
    """Call with a vector whose third value is missing."""
    call, labels = VECTOR_ARGUMENTS.get(argument, (None, list(FRAME.index)))
    values = [f"s{i % 3}" if kind == "text" else float(i % 3) for i in range(len(labels))]
    values[2] = missing
    held = {
        "list": lambda: values,
        "array": lambda: np.array(values, dtype=object),
        "Series": lambda: pandas.Series(values, index=labels, dtype=object),
        "dict": lambda: dict(zip(labels, values, strict=True)),
    }[container]()
    if argument == "by_label":
        partition.by_label(held)
    elif argument == "bounds":
        private(bounds=(held, HIGH))
    else:
        call(lambda *_: held, np.arange(len(labels)))


@pytest.mark.parametrize("argument", [*VECTOR_ARGUMENTS, "by_label"])
def test_no_missing_value_is_a_value(argument):
    """Every kind of missing value in a list, and one kind in every container."""
    cases = [("list", missing, kind) for missing in MISSING for kind in ("text", "numbers")]
    cases += [(container, "nan", "numbers") for container in ("array", "Series", "dict")]
    for container, missing, kind in cases:
        with pytest.raises(InputError):
            with_none(argument, container, MISSING[missing], kind)
            pytest.fail(f"{missing} counts as a value of a {container}")


def other_forms():
    """Vectors that miss a value in a way of their own."""
    masked = np.ma.array(np.arange(N) % 3, mask=np.arange(N) == 4)
    yield masked
    yield masked.astype(float)
    yield np.ma.array(SITES, mask=np.arange(N) == 4)
    yield pandas.Series([1, None] * 12, dtype="Int64")
    yield pandas.Series(["a", None] * 12, dtype="string")
    yield pandas.Series(["a", None] * 12, dtype="category")
    yield pandas.Series(pandas.to_datetime(["2020-01-01", None] * 12))
    yield np.array(["2020-01-01", "NaT"] * 12, dtype="datetime64[D]")
    yield ["a", " "] * 12
    yield pandas.MultiIndex.from_tuples([("a", None), ("b", "c")] * 12).get_level_values(1)
    yield polars.Series(["a", None] * 12)
    yield polars.Series([1, None] * 12)
    yield pyarrow.array(["a", None] * 12)
    yield pyarrow.chunked_array([[1, None] * 12])


def test_a_missing_group_is_no_client():
    for held in other_forms():
        for matrix in (X, FRAME):
            with pytest.raises(InputError):
                FederatedPCA(2).fit(matrix, groups=held)
                pytest.fail(f"{held!r} counts as groups")


class Raising:
    """An array of a library that has a bad day."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("not on this device")


def strange():
    """Containers that are no vector of values."""
    yield from (
        "age", b"age", bytearray(b"abcd"), {1, 2, 3}, frozenset([1.0]), (v for v in LOW),
        iter([1, 2]), object(), len, 3j, scipy.sparse.csr_array(np.eye(4)),
        scipy.sparse.coo_matrix(np.ones((1, 4))), np.array([(1, 2.0)] * 4, dtype="i4,f8"),
        [1, [2]], [[1, 2], [3]], {"age": [1, [2]]}, FRAME, [FRAME["age"], FRAME["bmi"]],
        collections.UserDict({"a": 1}), array.array("d"), np.array(LOW, dtype=complex),
        pandas.Series(["x"] * 4, index=NAMES), pandas.date_range("2020", periods=4),
        {}.values(), memoryview(b"abcd"), Raising(),
    )  # fmt: skip
    yield xarray.DataArray(LOW, coords={"feature": NAMES}, dims="feature")
    yield xarray.Dataset({"a": ("x", LOW)})


TAKES_DATA = [
    lambda held: private(bounds=held),
    lambda held: private(bounds=(held, HIGH)),
    lambda held: fedcore.run("ssi", CLIENTS, 2, start=held),
    lambda held: fedcore.run("fedrep_linear", CLIENTS, 2, labels=held),
    lambda held: fedcore.run("fedrep_linear", CLIENTS, 2, labels=[held, Y[8:16], Y[16:]]),
    lambda held: fedcore.run("ssi", CLIENTS, 2, held_out=held),
    lambda held: fedcore.run("ssi", CLIENTS, 2, held_out=(CLIENTS, held)),
    lambda held: fedcore.run("ssi", [held, X[:, :3]], 2),
    lambda held: FederatedPCA(2).fit([X[:, :3], held]),
    lambda held: FederatedPCA(2).fit({"a": X[:, :3], "b": held}),
    lambda held: FederatedPCA(2).fit(X[:, :3]).transform(held),
    lambda held: FederatedPCA(2).fit(X, groups=held),
    lambda held: partition.dirichlet(held, 2, 1.0, np.random.default_rng(0), min_size=99),
]


@pytest.mark.parametrize("call", TAKES_DATA)
def test_what_is_no_container_ends_in_one_sentence(call):
    for held in strange():
        with pytest.raises(InputError) as told:
            call(held)
            pytest.fail(f"{held!r} counts as data")
        assert str(told.value).count("\n") == 0


def test_rows_of_an_array_have_no_labels_but_their_numbers():
    numbered = pandas.Series(SITES).sample(frac=1, random_state=0)
    of_rows = labelled.per_row(numbered, "groups", N)
    np.testing.assert_array_equal(of_rows, SITES)
    left = pandas.Series(SITES, index=np.arange(N) * 3 + 5)  # rows of a frame were dropped
    np.testing.assert_array_equal(labelled.per_row(left, "groups", N), SITES)
    with pytest.raises(InputError):
        labelled.per_row(pandas.Series(SITES, index=FRAME.index), "groups", N)
    refused(lambda: labelled.per_row(left, "groups", N, list(FRAME.index)), InputError)


def test_held_out_samples_are_those_of_the_clients_and_their_columns():
    from fedcore.user_runs import held_out_samples

    order = [3, 1, 0, 2]
    own = {name: frame[[NAMES[i] for i in order]] for name, frame in reversed(CLIENTS.items())}
    y = dict(zip(CLIENTS, (Y[:8], Y[8:16], Y[16:]), strict=True))
    found = held_out_samples((own, y), list(CLIENTS), NAMES, Clients([X[:8], X[8:16], X[16:]]))
    for i, name in enumerate(CLIENTS):
        np.testing.assert_array_equal(found[i], CLIENTS[name])
        np.testing.assert_array_equal(found.labels[i], y[name])

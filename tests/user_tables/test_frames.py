"""Data frames of other people: advice works as pasted, and what may be no measurement is told."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedcore
from fedcore import user_tables
from fedcore.errors import ColumnWarning, TableError
from fedcore.problems.clients import check_clients, check_matrix

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")


def to_polars(frame):
    found = polars.from_arrow(FORMS["arrow"](frame))
    found.columns = [*frame.columns]  # polars has names of its own for those without one
    return found


FORMS = {
    "pandas": lambda frame: frame,
    "polars": to_polars,
    "arrow": lambda frame: pyarrow.Table.from_pandas(frame, preserve_index=False),
}
ROWS = 30
NO_NUMBERS = ["n/a", "", " ", "<5", "inf", "-", "see note", "'", '"a\\b"']


def written(values, point, thousands="", minus="-"):
    """Return numbers as a person writes them."""
    texts = [f"{v:{',' if thousands else ''}.3f}" for v in values]
    swap = str.maketrans({",": thousands, ".": point, "-": minus})
    return [text.translate(swap) for text in texts]


def spoilt(cells, bad):
    """Put other things in some cells."""
    cells = [*cells]
    for row, value in bad.items():
        cells[row] = value
    return cells


@st.composite
def tables(draw):
    """Return a frame of which some columns need a call, the numbers meant, and where none is."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    point = draw(st.sampled_from([".", ","]))
    thousands = draw(st.sampled_from(["", ".,".replace(point, ""), " ", "\u202f", "'"]))
    minus = draw(st.sampled_from(["-", "\u2212"]))
    columns, truth, lost = {}, {}, set()
    for name in ["age", "my dose", 'a"b', "iron"][: draw(st.integers(1, 4))]:
        values = np.round(rng.standard_normal(ROWS) * 3000 * bool(thousands) + 0.5, 3)
        kind = draw(st.sampled_from(["number", "inf", "texts", "mixed", "words", "lacks"]))
        at = draw(st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=3, unique=True))
        if kind == "number":
            columns[name] = values
        elif kind == "inf":
            columns[name] = spoilt(
                values, {i: draw(st.sampled_from([np.inf, -np.inf])) for i in at}
            )
        elif kind == "lacks":
            columns[name] = spoilt(values, dict.fromkeys(at, np.nan))
        elif kind == "words":
            columns[name] = [f"ward {i % 4}" for i in range(ROWS)]
            continue
        else:
            texts = written(values, point, thousands, minus)
            bad = {i: draw(st.sampled_from(NO_NUMBERS)) for i in at}
            columns[name] = spoilt(texts, bad) if kind == "mixed" else texts
        truth[name] = values
        lost |= {*at} if kind in ("inf", "mixed", "lacks") else set()
    return pandas.DataFrame(columns), truth, sorted(lost)


def follow(form, seen=()):
    """Follow every advice as pasted until a frame is taken; return what was taken each time."""
    try:
        return [check_matrix(form, "client 0")]
    except TableError as error:
        assert str(error) not in seen and len(seen) < 4
        assert error.client == "client 0" and error.column == error.parts[0].column
        found = []
        for way in error.advice:
            if way.call:
                found += follow(eval(way.call, {"frame": form}), (*seen, str(error)))
        return found


@pytest.mark.parametrize("kind", FORMS)
@settings(max_examples=120, deadline=None)
@given(table=tables())
def test_every_call_works_and_one_keeps_all_that_was_measured(kind, table):
    frame, truth, lost = table
    found = follow(FORMS[kind](frame))
    kept = np.setdiff1d(np.arange(ROWS), lost)
    if truth:
        wanted = np.column_stack([*truth.values()])[kept]
        assert any(x.shape == wanted.shape and np.allclose(x, wanted, rtol=1e-12) for x in found)
    else:
        assert not found


def test_what_may_be_thousands_or_decimals_is_left_to_the_user():
    frame = pandas.DataFrame({"a": ["1,500", "2,250"] * 5, "b": 1.0})
    for make in FORMS.values():
        first = [x[0, 0] for x in follow(make(frame)) if x.shape[1] == 2]
        assert sorted(first) == [1.5, 1500]
    mixed = pandas.DataFrame({"a": ["1,5", "2.5"] * 5, "b": 1.0})  # no reading takes both
    assert [x.shape for x in follow(mixed)] == [(10, 1)]


# Columns that only some clients have.


@pytest.mark.parametrize("named", [False, True])
@settings(max_examples=60, deadline=None)
@given(
    names=st.lists(
        st.lists(st.sampled_from(["a", "b", "my c", 'd"', "A"]), min_size=1, unique=True),
        min_size=2, max_size=4,
    ),
    forms=st.lists(st.sampled_from([*FORMS]), min_size=4, max_size=4),
)  # fmt: skip
def test_frames_of_other_columns_are_refused_with_the_columns_that_all_have(named, names, forms):
    rng = np.random.default_rng(0)
    frames = [FORMS[form](pandas.DataFrame(rng.standard_normal((9, len(own))), columns=own))
              for form, own in zip(forms, names, strict=False)]  # fmt: skip
    frames = {f"ward {i}": frame for i, frame in enumerate(frames)} if named else frames
    common, every = set.intersection(*map(set, names)), set.union(*map(set, names))
    doors = [fedcore.FederatedPCA(1).fit, lambda given: fedcore.run("ssi", given, 1)]
    for door in doors:
        if common == every:
            door(frames)
            continue
        with pytest.raises(TableError) as told:
            door(frames)
        lacking = {(part.file, part.column) for part in told.value.parts}
        assert {column for _, column in lacking} == every - common
        assert len(lacking) == sum(len(every - {*own}) for own in names)
        assert told.value.column in every and told.value.client is not None
        (way,) = told.value.advice
        assert bool(way.call) == bool(common)
        if common:
            door(eval(way.call, {"frames": frames}))


@pytest.mark.parametrize("kind", FORMS)
def test_a_frame_with_more_columns_than_the_fit_is_told_which_to_take(kind):
    x = np.random.default_rng(0).standard_normal((20, 4))
    frame = pandas.DataFrame(x, columns=["a", "b", "my c", "d"])
    model = fedcore.FederatedPCA(2).fit([FORMS[kind](frame[["my c", "a", "b"]])])
    with pytest.raises(TableError) as told:
        model.transform(FORMS[kind](frame))
    assert told.value.client == "x" and told.value.column == "d"
    taken = eval(told.value.advice[0].call, {"frame": FORMS[kind](frame)})
    np.testing.assert_array_equal(
        model.transform(taken), model.transform(frame[["my c", "a", "b"]])
    )
    with pytest.raises(TableError) as told:
        model.transform(FORMS[kind](frame[["a", "d"]]))
    assert {part.column for part in told.value.parts} == {"b", "my c", "d"}


# Columns that may be no measurements.

DOUBTS = {
    "index": range, "id": lambda n: range(1, n + 1), "row_nr": range, "": range,
    "patient_id": lambda n: np.random.default_rng(n).permutation(n) + 1000,
    "admitted": lambda n: [20230100 + i % 28 + 1 for i in range(n)],
}  # fmt: skip
NONE = {
    "count": lambda n: np.arange(n) // 2, "dose": lambda n: np.arange(n) + 0.5,
    "visits": lambda n: np.arange(n) % 3,
}  # fmt: skip


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize("name", [*DOUBTS, *NONE])
def test_what_files_tell_of_frames_tell_at_the_callers_line(tmp_path, kind, name):
    rng, parts = np.random.default_rng(0), []
    for n in (20, 15):
        part = pandas.DataFrame(rng.standard_normal((n, 2)), columns=["age", "iron"])
        parts.append(part.assign(**{name: [*(DOUBTS | NONE)[name](n)]}))
        part = parts[-1].rename(columns={"": "Unnamed: 0"})
        part.to_csv(tmp_path / f"{n}.csv", index=False)
    if name:
        table = user_tables.together([*tmp_path.glob("*.csv")])[0]
        assert any(guess.what for guess in table.guesses) == (name in DOUBTS)
    frames = [FORMS[kind](part) for part in parts]
    pooled = FORMS[kind](pandas.concat(parts))
    by = np.repeat([0, 1], [20, 15])
    for call, scope in (
        (lambda: fedcore.FederatedPCA(1).fit(frames), frames),
        (lambda: fedcore.run("ssi", frames, 1), frames),
        (lambda: fedcore.FederatedPCA(1).fit({"a": frames[0], "b": frames[1]}),
         {"a": frames[0], "b": frames[1]}),
        (lambda: fedcore.FederatedPCA(1).fit(pooled, groups=by), pooled),
    ):  # fmt: skip
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                call()
            except TableError as error:  # an index without a name
                assert not name and error.column == ""
                continue
        told = [one for one in told if issubclass(one.category, ColumnWarning)]
        assert len(told) == (name in DOUBTS)
        for one in told:
            assert one.filename == __file__ and one.message.columns == [name]
            (way,) = one.message.advice
            left = eval(way.call, {"frames": scope, "frame": scope})
            with warnings.catch_warnings():
                warnings.simplefilter("error", ColumnWarning)
                if scope is pooled:
                    fedcore.FederatedPCA(1).fit(left, groups=by)
                else:
                    check_clients(left)

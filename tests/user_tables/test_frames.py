"""Data frames of other people: advice works as pasted, and what may be no measurement is told."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedcore
from fedcore.errors import ColumnWarning, TableError
from fedcore.user_tables import own_files
from fedcore.user_tables.matrices import check_matrix
from refused import refused

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
SPOILT = {  # what some cells hold, and whether the column can be used
    "number": (0.5, None), "infinite": (np.inf, "text"), "missing": (np.nan, "missing"),
    "text": ("<5", "text"), "digits": ("1,5", "text"), "word": ("n/a", "text"),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["pandas", "arrow"])  # polars has categories of texts alone
def test_categories_of_numbers_are_labels(kind):
    wards = pandas.Categorical([1, 2, 3, 1])
    frame = FORMS[kind](pandas.DataFrame({"ward": wards, "x": [1.0, 2, 3, 7]}))
    refused(lambda: check_matrix(frame, "client 0"), TableError, "'ward'")


@pytest.mark.parametrize("kind", FORMS)
@settings(max_examples=60, deadline=None)
@given(
    spoilt=st.lists(st.sampled_from([*SPOILT]), min_size=1, max_size=4),
    rows=st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=3, unique=True),
)
def test_all_cells_that_are_no_numbers_are_told_at_once(kind, spoilt, rows):
    columns = {}
    for i, name in enumerate(spoilt):
        columns[f"my {i}"] = [0.5] * ROWS
        for row in rows:
            columns[f"my {i}"][row] = SPOILT[name][0]
        if isinstance(SPOILT[name][0], str):
            columns[f"my {i}"] = [*map(str, columns[f"my {i}"])]
    form, wrong = FORMS[kind](pandas.DataFrame(columns)), [SPOILT[name][1] for name in spoilt]
    if not any(wrong):
        assert check_matrix(form, "client 0").shape == (ROWS, len(spoilt))
        return
    told = refused(lambda: check_matrix(form, "client 0"), TableError)
    found = {one.column: one for one in told.parts}
    assert {name: one.kind for name, one in found.items()} == {
        f"my {i}": what for i, what in enumerate(wrong) if what
    }
    for one in found.values():
        texts = isinstance(SPOILT[spoilt[int(one.column[3:])]][0], str)
        assert (one.cells, one.row) == ((ROWS, 0) if texts else (len(rows), min(rows)))


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
def test_frames_of_other_columns_are_refused_with_all_that_differ(named, names, forms):
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


@pytest.mark.parametrize("kind", FORMS)
def test_a_frame_with_more_columns_than_the_fit_is_refused_with_their_names(kind):
    x = np.random.default_rng(0).standard_normal((20, 4))
    frame = pandas.DataFrame(x, columns=["a", "b", "my c", "d"])
    model = fedcore.FederatedPCA(2).fit([FORMS[kind](frame[["my c", "a", "b"]])])
    refused(lambda: model.transform(FORMS[kind](frame)), TableError, client="x", column="d")
    told = refused(lambda: model.transform(FORMS[kind](frame[["a", "d"]])), TableError)
    assert {part.column for part in told.parts} == {"b", "my c", "d"}


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
        table = own_files.together([*tmp_path.glob("*.csv")])[0]
        assert any(guess.what for guess in table.guesses) == (name in DOUBTS)
    frames = [FORMS[kind](part) for part in parts]
    pooled = FORMS[kind](pandas.concat(parts))
    by = np.repeat([0, 1], [20, 15])
    for call in (
        lambda: fedcore.FederatedPCA(1).fit(frames),
        lambda: fedcore.run("ssi", frames, 1),
        lambda: fedcore.FederatedPCA(1).fit({"a": frames[0], "b": frames[1]}),
        lambda: fedcore.FederatedPCA(1).fit(pooled, groups=by),
    ):
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

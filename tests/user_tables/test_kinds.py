"""Over whole kinds of tables: what has two values, is damaged, or is no record is told."""

from __future__ import annotations

import io
import itertools
import string
import unicodedata

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import fedcore
from commands import call
from fedcore.errors import ColumnWarning, FedcoreError, TableError
from fedcore.experiments import from_files
from fedcore.user_tables import doubts, names, own_files
from fedcore.user_tables.matrices import check_clients, check_labels, check_matrix
from own_tables import NAMES, WRITERS, written
from refused import refused

pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")


def every(step, *ways):
    """Return some of all combinations, in which every two values of two ways come together."""
    return list(itertools.product(*ways))[::step]


def said(path, **options):
    """Return all that is said of a file: its refusal, or what is told."""
    try:
        return " ".join(str(one) for one in from_files.make([str(path)], **options).guesses)
    except FedcoreError as error:
        return str(error)


# One text, two values.

TWO = {  # how a cell is written, given a random generator
    "dot and three": lambda rng: f"{rng.integers(1, 999)}.{rng.integers(100, 999)}",
    "comma and three": lambda rng: f"{rng.integers(1, 999)},{rng.integers(100, 999)}",
    "blank": lambda rng: f"{rng.integers(1, 999)} {rng.integers(100, 999)}",
    "apostrophe": lambda rng: f"{rng.integers(1, 999)}'{rng.integers(100, 999)}",
    "brackets": lambda rng: f"({rng.integers(1, 999)})",
    "percent": lambda rng: f"{rng.integers(1, 99)}%",
    "slash": lambda rng: f"{rng.integers(1, 28):02d}/{rng.integers(1, 12):02d}",
    "days": lambda rng: f"{rng.integers(1, 28):02d}.{rng.integers(1, 12):02d}",
    "times": lambda rng: f"{rng.integers(10, 23)}.{rng.integers(1, 5)}{rng.integers(1, 9)}",
    "clock": lambda rng: f"{rng.integers(10, 23)}:{rng.integers(10, 59)}",
    "leading zeros": lambda rng: f"0{rng.integers(1000, 9999)}",
    "exponent of a code": lambda rng: f"{rng.integers(1, 9)}E{rng.integers(1, 9)}",
    "truth among numbers": lambda rng: ["TRUE", "3"][rng.integers(2)],
    "under line": lambda rng: f"{rng.integers(1, 999)}_{rng.integers(100, 999)}",
}
BESIDE = {
    "nothing": lambda rng, n: None,
    "dots": lambda rng, n: [f"{v:.2f}" for v in rng.uniform(0, 9, n)],
    "commas": lambda rng, n: [f"{v:.2f}".replace(".", ",") for v in rng.uniform(0, 9, n)],
    "grouped by dots": lambda rng, n: [f"{v:,}".replace(",", ".")
                                       for v in rng.integers(10**6, 10**8, n)],
    "whole": lambda rng, n: [str(v) for v in rng.integers(0, 50, n)],
}  # fmt: skip


@pytest.mark.parametrize("form", TWO)
@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("apart", [False, True])
def test_a_text_of_two_values_is_asked_about_or_told(tmp_path, form, beside, apart):
    rng, n = np.random.default_rng(0), 12
    columns = {"odd": [TWO[form](rng) for _ in range(n)]}
    if (other := BESIDE[beside](rng, n)) is not None:
        columns["other"] = other
    frame = pandas.DataFrame({**columns, "plain": [f"{i % 5}" for i in range(n)]})
    frame.to_csv(path := tmp_path / "a.csv", sep=";", index=False)
    if apart and form == "times":
        return  # labels are chosen
    words = said(path, labels="odd" if apart and beside != "nothing" else None)
    assert "'odd'" in words or "cannot be used" in words


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), places=st.integers(0, 17), scale=st.sampled_from([1e-3, 1, 1e6]),
       sign=st.sampled_from(",;\t"), form=st.sampled_from(["f", "e", "g"]))  # fmt: skip
def test_decimals_as_a_program_writes_them_are_not_asked_about(
    tmp_path_factory, seed, places, scale, sign, form
):
    x = np.random.default_rng(seed).standard_normal((12, 3)) * scale
    cells = [[f"{v:.{places}{form}}" for v in row] for row in x]
    path = tmp_path_factory.mktemp("decimals") / "a.csv"
    pandas.DataFrame(cells, columns=NAMES).to_csv(path, sep=sign, index=False)
    np.testing.assert_array_equal(own_files.read(path).x, np.array(cells).astype(float))


@pytest.mark.parametrize("names", ["a,b", "weight, kg", "x,y"])
@pytest.mark.parametrize("places", [1, 2, 3])
def test_names_with_a_comma_over_decimal_commas_are_asked_about(tmp_path, names, places):
    x = np.random.default_rng(0).uniform(1, 9, 12).round(places)
    lines = [names, *(f"{v:.{places}f}".replace(".", ",") for v in x)]
    (path := tmp_path / "a.csv").write_text("\n".join(lines))
    told = refused(lambda: own_files.read(path), TableError)
    two, one = [own_files.read(path, **way.options).x for way in told.advice]
    assert two.shape == (12, 2)
    np.testing.assert_array_equal(one[:, 0], x)


# Lines that are no records.

LINES = {
    "comment": "# made by hand", "comment as wide": "# a{0}b{0}c", "units": "years{0}mg{0}g/l",
    "names again": "age{0}dose{0}iron", "blank": "", "blanks": "  ", "source": "Source: a report",
    "no break": "\u00a0", "form feed": "\f", "cells": "{0}{0}",
    "longer": "1{0}2{0}3{0}", "sep": "sep={0}",
}  # fmt: skip


@pytest.mark.parametrize(
    ("line", "place", "options", "ending"),
    every(5, LINES, [1, 7, -1], [{}, {"missing": "drop"}], ["csv", "tsv", "txt"]),
)
def test_a_line_that_is_no_record_is_refused_or_told(tmp_path, line, place, ending, options):
    sign = {"csv": ",", "tsv": "\t", "txt": ";"}[ending]
    x = np.random.default_rng(0).uniform(1, 9, (12, 3)).round(2)
    plain = [sign.join(NAMES), *(sign.join(map(str, row)) for row in x)]
    path = tmp_path / f"a.{ending}"
    path.write_text("\n".join(plain) + "\n")
    before = said(path, **options)
    plain.insert(place if place > 0 else len(plain) + place, LINES[line].format(sign))
    path.write_text("\n".join(plain) + "\n")
    assert len(said(path, **options)) > len(before)


@pytest.mark.parametrize("line", ["", "  ", "\u00a0", "\f", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blank_lines_above_the_names_are_told(tmp_path, line, end):
    rows = [line, "age,dose", *(f"{i / 7:.3f},{i}.5" for i in range(12))]
    (path := tmp_path / "a.csv").write_text(end.join(rows) + end, newline="")
    assert "1 blank line" in said(path) and own_files.read(path).x.shape == (12, 2)


@pytest.mark.parametrize("lines", ["# a comment", "\n# and more", ""])
@pytest.mark.parametrize("at", [0, 2])
def test_lines_of_libsvm_files_without_a_sample_are_told(tmp_path, lines, at):
    rows = ["1 1:2 2:3", "2 1:1 2:5", "1 1:4"]
    rows.insert(at, lines)
    (path := tmp_path / "a.svm").write_text("\n".join(rows) + "\n")
    assert "left out" in said(path) and own_files.read(path).x.shape == (3, 2)


def deviation(x, axis):
    return np.std(x, axis=axis, ddof=1)


WHAT = [
    [np.sum], [np.mean], [np.sum, np.mean], [np.mean, np.min, np.sum], [deviation], [np.std],
    [np.var], [np.ma.count], [np.min, np.max], [np.ma.count, np.mean, deviation, np.min, np.max],
]  # fmt: skip


@pytest.mark.parametrize(
    ("what", "top", "places", "kind"),
    every(3, WHAT, [False, True], [1, 9], ["csv", "parquet", "npz", "frame", "groups"]),
)
def test_a_row_that_sums_up_the_others_is_told(tmp_path, recwarn, what, top, places, kind):
    x = np.random.default_rng(0).uniform(1, 9, (30, 3)).round(2)
    rows = [np.round(one(x, axis=0), places) for one in what]
    frame = pandas.DataFrame(np.vstack([*rows, x] if top else [x, *rows]), columns=NAMES)
    path = tmp_path / f"a.{kind}"
    if kind == "frame":
        check_clients([frame])
    if kind == "groups":
        fedcore.FederatedPCA(1).fit(frame, groups=np.arange(len(frame)) % 2)
    if kind in ("frame", "groups"):
        assert sum(one.category is ColumnWarning for one in recwarn) == len(what)
        return
    WRITERS[kind](frame, path)
    assert said(path).count("below it" if top else "above it") == len(what)


@pytest.mark.parametrize("order", ["drawn", "sorted", "rounded", "few", "zeros", "one column",
                                   "ends alike"])  # fmt: skip
@pytest.mark.parametrize("rows", [11, 30, 300])
def test_a_row_that_is_a_sample_is_not_told(order, rows):
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = rng.uniform(1, 9, (rows, 1 if order == "one column" else 3))
        x = {"sorted": lambda x: np.sort(x, 0), "rounded": np.round, "few": lambda x: x // 5,
             "ends alike": lambda x: np.clip(np.sort(x, 0), *np.quantile(x, [0.2, 0.8], axis=0)),
             "zeros": lambda x: x * (rng.random(x.shape) < 0.3),
             }.get(order, np.array)(x)  # fmt: skip
        assert not [*doubts.summaries(x)]


WORDS = ["Total", "mean", "Summe:", "Total (n = 12)", "Std. Dev.", "50%", "North Total", "count",
         "Totale"]  # fmt: skip
KINDS = ["csv", "parquet", "npz", "index", "groups", "clients"]


@pytest.mark.parametrize(
    ("word", "kind", "place", "by"), every(5, WORDS, KINDS, [0, 6, 12], [False, True])
)
def test_a_row_called_a_total_is_told_though_its_name_is_no_feature(
    tmp_path, recwarn, word, kind, place, by
):
    x = np.random.default_rng(0).uniform(1, 9, (13, 3))
    wards = ["a", "b"] * 6
    wards.insert(place, word)
    frame, path = pandas.DataFrame(x, columns=NAMES), tmp_path / f"a.{kind}"
    model = fedcore.FederatedPCA(1)
    if kind in ("index", "groups", "clients"):
        halves = {"groups": np.arange(13) > 5} if by else {}
        {"index": lambda: model.fit(frame.set_axis(wards), **halves),
         "groups": lambda: model.fit(frame if by else x, groups=wards),
         "clients": lambda: model.fit({word: x, "a": x})}[kind]()  # fmt: skip
        told = [str(one.message) for one in recwarn if repr(word) in str(one.message)]
        assert told and (kind != "index" or f"row {place} is called" in told[0])
        return
    if kind == "npz":
        np.savez(path, x=x, columns=NAMES, ward=np.array(wards, "S" if by else "U"))
    else:
        getattr(frame.assign(ward=wards), f"to_{kind}")(path, index=False)
    options = {} if kind == "npz" else {"without": "ward"}
    assert word in said(path, **({"by": "ward"} if by else options))


# Codes.

CODES = [[-999], [999], [-1], [9999], [99], [88, 99], [777, 888, 999], [-9], [-99.0, 99],
         [-2, -1], [-8, -5], [8, 9], [1e308], [97, 98], [-9, 998], [-7], [1e20], [32767],
         [-32768]]  # fmt: skip


@pytest.mark.parametrize(
    ("codes", "times", "scale", "kind"),
    every(5, CODES, [1, 3], ["ages", "stages", "two", "decimals"], ["npz", "csv", "frame"]),
)
def test_all_codes_for_missing_values_are_told(tmp_path, recwarn, codes, times, scale, kind):
    rng = np.random.default_rng(0)
    low, high, places = {"ages": (20, 60, 0), "stages": (1, 5, 0), "two": (0, 1, 0),
                         "decimals": (0, 9, 2)}[scale]  # fmt: skip
    x = rng.uniform(low, high, (30, 2)).round(places)
    near = {"ages": ([99], [88, 99], [97, 98], [8, 9]),
            "decimals": ([8, 9], [-2, -1], [-8, -5]), "stages": ([-2, -1], [-8, -5]),
            "two": ([-1], [-2, -1], [-8, -5])}  # fmt: skip
    if codes in near[scale] or (codes == [8, 9] and times == 1):
        return  # within reach of what is measured, or once
    rows = rng.permutation(30)[: times * len(codes)]
    x[rows, 1] = [*codes * times][: len(rows)]
    frame = pandas.DataFrame(x, columns=["a", "b"])
    if kind == "frame":
        check_clients([frame])
        told = " ".join(str(one.message) for one in recwarn if one.category is ColumnWarning)
    else:
        path = tmp_path / f"a.{kind}"
        WRITERS[kind](frame, path)
        told = said(path)
    assert all(f"{code:g}" in told for code in codes) and "'b'" in told and "'a'" not in told


@pytest.mark.parametrize("kind", ["zip", "phone", "plz", "times", "days", "icd_code", "months",
                                  "patient_no", "PatientID", "USUBJID", "id_of_case", "Fallnummer",
                                  "fips", "years"])  # fmt: skip
@pytest.mark.parametrize("form", ["npz", "frame"])
def test_numbers_that_are_codes_or_dates_are_told(tmp_path, recwarn, kind, form):
    rng, n = np.random.default_rng(0), 40
    x = {"zip": lambda: rng.choice(rng.integers(10_000, 99_999, 20), n),
         "phone": lambda: rng.choice(rng.integers(10**9, 10**10 - 1, 20), n),
         "plz": lambda: rng.choice([9, 17], n), "icd_code": lambda: rng.integers(1, 300, n),
         "months": lambda: rng.integers(1990, 2020, n) + rng.integers(1, 13, n) / 100,
         "years": lambda: rng.integers(1, 13, n) + rng.integers(1990, 2020, n) / 1e4,
         "times": lambda: rng.integers(0, 24, n) + rng.integers(0, 60, n) / 100,
         "days": lambda: rng.integers(1, 29, n) + rng.integers(1, 13, n) / 100,
         }.get(kind, lambda: rng.integers(1, 30, n))()  # fmt: skip
    table = np.column_stack([x, rng.standard_normal(n)])
    if form == "frame":
        check_clients([pandas.DataFrame(table, columns=[kind, "b"])])
        (told,) = [one.message for one in recwarn if one.category is ColumnWarning]
        assert told.columns == [kind]
        return
    np.savez(path := tmp_path / "a.npz", x=table, columns=[kind, "b"])
    assert f"'{kind}'" in said(path)


# Damage.


def whole_files():
    """Return one file of each format, as bytes."""
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.standard_normal((12, 3)).round(3), columns=NAMES)
    made = {"csv": frame.assign(note='a "b"').to_csv(index=False).encode()}
    made["txt"] = frame.to_csv(index=False, sep=";", decimal=",").encode("utf-16")
    made["svm"] = b"".join(
        b"%d 1:%.3f 3:%.3f\n" % (i % 2, *rng.standard_normal(2)) for i in range(9)
    )
    for ending, write in (
        ("parquet", lambda file: frame.to_parquet(file)),
        ("npy", lambda file: np.save(file, frame.to_numpy())),
        ("npz", lambda file: np.savez_compressed(file, x=frame.to_numpy(), columns=NAMES)),
        ("sparse.npz", lambda file: scipy.sparse.save_npz(file, scipy.sparse.eye_array(5).tocsr())),
    ):
        write(file := io.BytesIO())
        made[ending] = file.getvalue()
    return made


WHOLE = whole_files()


@pytest.mark.parametrize("ending", WHOLE)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_in_one_sentence(tmp_path_factory, ending, data):
    content = bytearray(WHOLE[ending])
    place = st.integers(0, len(content) - 1)
    for at in data.draw(st.lists(place | st.integers(0, 130), max_size=6)):
        content[at % len(content)] = data.draw(
            st.integers(0, 255) | st.sampled_from(b"\"'{(,;\n\0")
        )
    cut = data.draw(st.just(len(content)) | place)
    path = tmp_path_factory.mktemp("damaged") / f"a.{ending}"
    path.write_bytes(content[:cut] + data.draw(st.sampled_from([b"", b'"', b"\x1a", b"\0"])))
    try:
        own_files.read(path)
    except FedcoreError as error:
        assert "\n" not in str(error) and str(path) in str(error)


@pytest.mark.parametrize("opens", ['1,2,"3', '1,"2,3', '"'])
@pytest.mark.parametrize("rows", [0, 5])
def test_a_quotation_that_does_not_end_is_refused_with_its_line(tmp_path, opens, rows):
    lines = ["age,dose,note", "1,2,3", "4,5,6", opens, *["7,8,9"] * rows]
    (path := tmp_path / "a.csv").write_text("\n".join(lines))
    refused(lambda: own_files.read(path, without=["note"]), TableError, row=3)


@pytest.mark.parametrize("ending", ["csv", "svm"])
@pytest.mark.parametrize("end", [b"\x1a", b"\r\n\x1a", b"\n\x1a\x1a\n", b"\0\0"])
def test_a_sign_that_ends_a_file_is_no_part_of_a_number(tmp_path, ending, end):
    path = tmp_path / f"a.{ending}"
    path.write_bytes(
        {"csv": b"a,b\n1.5,2\n3,4.5", "svm": b"1 1:1.5 2:2\n1 1:3 2:4.5"}[ending] + end
    )
    x = own_files.read(path).x
    np.testing.assert_array_equal(x.toarray() if ending == "svm" else x, [[1.5, 2], [3, 4.5]])


# Advice.


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.lists(
            st.sampled_from(["1", "2.5", "3,5", "1.234", "1,234", "1.234,5", "x", "NA", "", "-",
                             "\x1b", "007", "1 000", "2019", "a b", '"', "-999", "total"]),
            min_size=1, max_size=4,
        ), min_size=1, max_size=9,
    ),
    st.sampled_from(",;\t|"),
    st.sampled_from(["a,b,c", "a;b", "x", "2019,2020", "Title", "a\x1b,b"]),
)  # fmt: skip
def test_advice_that_is_followed_is_not_refused_for_the_same_cause(
    tmp_path_factory, rows, sign, head
):
    path = tmp_path_factory.mktemp("advice") / "a.csv"
    path.write_text("\n".join([head.replace(",", sign), *map(sign.join, rows)]))
    todo = [({}, ())]
    while todo:
        options, seen = todo.pop()
        try:
            own_files.read(path, **options)
        except FedcoreError as error:
            cause = error.args[0]
            assert cause not in seen and len(seen) < 8, (options, seen, cause)
            for way in error.advice:
                assert str(dict(way.options)).isprintable() and "\\x" not in str(way.options)
                if way.options:
                    todo.append(({**options, **way.options}, (*seen, cause)))


# Names that look the same.

SAME = {
    "decomposed": lambda name: unicodedata.normalize("NFD", name),
    "zero width": lambda name: name[:3] + "\u200b" + name[3:],
    "no break": lambda name: name.replace(" ", "\u00a0"),
    "mark": lambda name: "\ufeff" + name,
}
NEAR = {
    "underscore": lambda name: name.replace(" ", "_"),
    "hyphen": lambda name: name.replace(" ", "-"),
    "typing error": lambda name: name.replace("ö", "oe"), "a letter less": lambda name: name[:-1],
    "two letters": lambda name: name[:-2] + name[-1] + name[-2],
}  # fmt: skip
NAME = "größe in cm"
PAIRS = [(NAME, near(NAME)) for near in NEAR.values()]
PAIRS += [("dose", "dsoe"), ("bmi", "bmj"), ("x\u00b2", "x2"), ("iron", "\u0456ron")]


def pair(folder, other, kind, first=NAME):
    x, names = np.random.default_rng(0).standard_normal((2, 12, 2)), (first, other)
    frames = [pandas.DataFrame(x[i], columns=[names[i], "age"]) for i in range(2)]
    return written(folder, frames, kind)


@pytest.mark.parametrize("how", SAME)
@pytest.mark.parametrize("kind", ["csv", "parquet", "npz"])
def test_names_that_look_the_same_are_one_and_told(tmp_path, how, kind):
    other = SAME[how](NAME)
    tables = own_files.together(paths := pair(tmp_path, other, kind))
    assert [table.names for table in tables] == [[NAME, "age"]] * 2
    assert any("look the same" in one.what for one in tables[1].guesses) or how == "mark"
    for options in ({"columns": [other]}, {"without": [other]}, {"apart": [other]}):
        assert own_files.together(paths, **options)[1].x.shape == (12, 1)
    (ranges := tmp_path / "r.csv").write_text(f"column,low,high\n{other},-9,9\nage,-9,9\n")
    assert call("pca", *paths, "--bounds", ranges).exit_code == 0


@pytest.mark.parametrize("how", SAME)
def test_names_of_frames_that_look_the_same_are_one_and_told(how):
    rng, other = np.random.default_rng(0), SAME[how](NAME)
    first, second = (pandas.DataFrame(rng.standard_normal((12, 2)), columns=[name, "age"])
                     for name in (NAME, other))  # fmt: skip
    with pytest.warns(ColumnWarning, match="look the same"):
        model = fedcore.FederatedPCA(1).fit([first, second[["age", other]]])
    with pytest.warns(ColumnWarning, match="look the same"):
        scores = model.transform(second[["age", other]])
    np.testing.assert_array_equal(scores, model.transform(second.set_axis([NAME, "age"], axis=1)))
    assert model.get_feature_names_out([other, "age"]).shape == (1,)
    private = {"epsilon": 9.0, "delta": 1e-6, "algorithm": "analyze_gauss"}
    fedcore.FederatedPCA(1, **private, bounds={"age": (-9, 9), other: (-9, 9)}).fit([first])
    (vector,) = check_labels({NAME: np.arange(12)}, [first.to_numpy()], {other: first})
    np.testing.assert_array_equal(vector, np.arange(12))


@pytest.mark.parametrize(("name", "other"), PAIRS)
@pytest.mark.parametrize("kind", ["csv", "parquet", "npz"])
def test_a_name_that_is_nearly_another_is_asked_about_before_columns_are_left_out(
    tmp_path, name, other, kind
):
    paths = pair(tmp_path, other, kind, name)
    told = refused(lambda: own_files.together(paths), TableError)
    assert not told.advice[0].options and repr(other) in told.advice[0].what
    assert {one.meant for one in told.parts} == {name, other}
    (ranges := tmp_path / "r.csv").write_text(f"column,low,high\n{other},-9,9\nage,-9,9\n")
    line = call("pca", paths[0], "--bounds", ranges).stderr
    assert f"did you mean {other!r}" in line
    frames = [pandas.DataFrame(np.eye(2), columns=[one, "age"]) for one in (name, other)]
    refused(lambda: fedcore.FederatedPCA(1).fit(frames), TableError, "did you mean")


@pytest.mark.parametrize(
    ("name", "other"), [("q10", "q11"), ("x1", "x2"), ("marker_2", "marker_12")]
)
def test_names_that_differ_in_digits_are_two_columns(name, other):
    assert not names.alike(name, [other])


# Objects.


@pytest.mark.parametrize("made", [object, "decimal"])
def test_an_array_of_objects_is_taken_as_a_frame_of_them_is(made):
    from decimal import Decimal

    x = np.random.default_rng(0).standard_normal((5, 3)).round(3)
    objects = x.astype(object) if made is object else np.vectorize(lambda v: Decimal(str(v)))(x)
    frame = pandas.DataFrame(objects, columns=NAMES)
    for form in (objects, objects.tolist(), frame):
        np.testing.assert_array_equal(check_matrix(form, "x"), x)
    for wrong in ("1", None, 1j, string):
        objects[2, 1] = wrong
        for form in (objects, pandas.DataFrame(objects, columns=NAMES)):
            with pytest.raises(FedcoreError):
                check_matrix(form, "x")


CELLS = {
    "list": [1.0], "set": {1}, "mapping": {"x": 1}, "array": np.ones(2), "nothing": None,
    "text": "a", "day": np.datetime64("2020-01-01"), "frame": pandas.DataFrame({"a": [1]}),
}  # fmt: skip


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("many", [1, 3, 5])
@pytest.mark.parametrize("form", ["frame", "array"])
def test_a_cell_that_holds_no_number_is_refused_with_its_column(cell, many, form):
    column = np.fromiter([*[CELLS[cell]] * many, *map(float, range(5 - many))], object, 5)
    frame = pandas.DataFrame({"a": np.arange(5.0), "b": column})
    with pytest.raises(FedcoreError, match=r"'b'|client 0"):
        check_clients([frame if form == "frame" else frame.to_numpy(object)])


@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("kind", ["Struct", "Array", "List", "lazy"])
def test_columns_of_several_values_a_cell_are_refused(width, kind):
    polars = pytest.importorskip("polars")
    cells = [{f"x{i}": 1.0 for i in range(width)} if kind == "Struct" else [1.0] * width] * 5
    dtype = polars.Array(polars.Float64, width) if kind == "Array" else None
    frame = polars.DataFrame({"a": range(5), "b": polars.Series(cells, dtype=dtype)})
    with pytest.raises(FedcoreError):
        check_clients([frame.select("a").lazy() if kind == "lazy" else frame])


# What is there and no file.


@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "nothing", "dead link", "folder"])
@pytest.mark.parametrize("ending", ["csv", "npz", "parquet", "svm"])
def test_of_what_is_there_and_no_file_it_is_not_said_that_it_is_not(tmp_path, kind, ending):
    import os
    import socket

    path = tmp_path / f"a.{ending}"
    made = {"pipe": lambda: os.mkfifo(path), "device": lambda: path.symlink_to("/dev/zero"),
            "socket": lambda: socket.socket(socket.AF_UNIX).bind(str(path)),
            "dead link": lambda: path.symlink_to("gone"), "folder": path.mkdir}  # fmt: skip
    made.get(kind, lambda: None)()
    assert ("there is no file" in said(path)) == (kind in ("nothing", "dead link"))


# A failed read has the cause that is known, and no advice for another.


@pytest.mark.parametrize(
    "sign", ["", ",", ";", " ", ".", "-", ",,", "é", '"', "\n", "a", "1", "\\t"]
)
def test_a_delimiter_that_separates_nothing_is_refused_as_such(tmp_path, sign):
    (path := tmp_path / "a.csv").write_text("a,b,c\n1,2,3\n4,5,6\n")
    words = said(path, delimiter=sign)
    assert "write it anew" not in words and "leave it out" not in words


@pytest.mark.parametrize(
    "name", ["none such", "rot13", "hex", "undefined", "", "utf-8", "cp1252", "utf-32"]
)
def test_an_encoding_that_is_none_is_refused_as_such(tmp_path, name):
    (path := tmp_path / "a.csv").write_text("a,b,c\n1,2,3\n4,5,6\n")
    words = said(path, encoding=name)
    assert "write it anew" not in words
    assert ("no encoding" in words) == (name in ("none such", "rot13", "hex", "undefined"))


@pytest.mark.parametrize(
    "text", ["<html><p>1</p></html>", '[{"a": 1}]', "a,b", "a;b\n", "\n\n", ""]
)
@pytest.mark.parametrize("skip", [0, 1, 50])
def test_a_file_is_called_empty_only_if_it_is(tmp_path, text, skip):
    (path := tmp_path / "a.csv").write_text(text)
    assert ("it is empty" in said(path, skip_lines=skip)) == (not text.strip() and not skip)


def test_lines_are_counted_from_the_top_of_the_file(tmp_path):
    (path := tmp_path / "a.csv").write_text("a,b\n2.5,1.5\n3.5,0.5\n4.5,2.25\n")
    assert "line 2 has numbers" in said(path, skip_lines=1)
    assert "line 3: ','" in said(path, skip_lines=2, delimiter=";")


@pytest.mark.filterwarnings("error")
def test_codes_at_the_limit_of_single_precision_are_told(tmp_path):
    x = np.random.default_rng(0).uniform(0, 9, (30, 2)).astype(np.float32)
    x[:2, 0] = -3.4e38
    np.savez(path := tmp_path / "a.npz", x=x, columns=["a", "b"])
    assert "e+38" in said(path)
    assert len(own_files.read(path, na=x[0, 0], missing="drop").x) == 28


@pytest.mark.parametrize("dtype", ["complex", "M8[D]", "m8[s]", "U5", "S5"])
def test_no_advice_on_arrays_loses_a_part_of_their_values(tmp_path, dtype):
    np.savez(path := tmp_path / "a.npz", x=np.ones((5, 2), int).astype(dtype))
    assert ("astype(float)" in said(path)) == (dtype in ("U5", "S5"))

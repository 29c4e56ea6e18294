"""Tables of one's own: one rule for all formats, and advice that leads on."""

from __future__ import annotations

import datetime as dt
import functools
import itertools
import re
import shlex
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import fedcore
from commands import call, ran
from fedcore.errors import FedcoreError, InputError, TableError
from fedcore.experiments import from_files
from fedcore.user_tables import own_files
from fedcore.user_tables.matrices import check_clients, check_matrix
from memory_peak import peak
from own_tables import NAMES, WRITERS, npz, written
from refused import refused

pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")
SIGNS = {"csv": ",", "tsv": "\t", "txt": ";"}


def frames(sizes=(30, 20, 25), names=NAMES, seed=0):
    rng = np.random.default_rng(seed)
    return [pandas.DataFrame(rng.standard_normal((n, len(names))), columns=names) for n in sizes]


def text(parts, at=(0, 1, 2)):
    return [p.assign(pid=[f"p{i}" for i in range(len(p))]) if i in at else p
            for i, p in enumerate(parts)]  # fmt: skip


def dates(parts):
    return [p.assign(admitted=pandas.Timestamp("2020-02-03")) for p in parts]


def holes(parts, at=(0, 2)):
    parts = [p.copy() for p in parts]
    for i in at:
        parts[i].iloc[1:4, 1] = np.nan
        parts[i].iloc[7, 2] = np.nan
    return parts


def full_of_holes(parts):
    return [p.assign(lab=np.nan) if i == 1 else p.assign(lab=1.5) for i, p in enumerate(parts)]


def infinite(parts):
    return [p.replace(p.iloc[3, 1], np.inf) for p in parts]


def wider(parts):
    return [p.assign(ward=np.sqrt(np.arange(len(p)))) if i else p for i, p in enumerate(parts)]


def messy(parts):
    """Make texts, ids, a column more, and gaps in every measurement, as hospitals have them."""
    parts = [p.copy() for p in wider(dates(text(parts)))]
    for k, part in enumerate(parts):
        for j in range(3):
            part.iloc[3 + j + k, j] = np.nan
    return parts


def marked(parts, marks=("-", "?")):
    parts = [p.astype(object) for p in holes(parts)]
    for j, mark in enumerate(marks):
        parts[j].iloc[[5, 11], j] = mark
    return parts


def years(parts):
    return [p.set_axis(["2019", "2020", "2021"], axis=1) for p in parts]


FAULTS = {
    "text": text, "text in one": functools.partial(text, at=(1,)), "dates": dates, "holes": holes,
    "full of holes": full_of_holes, "infinite": infinite, "wider": wider,
    "all": lambda parts: wider(holes(dates(text(parts)))), "years": years,
    "messy": messy, "marks": marked, "one mark": functools.partial(marked, marks=("n.a.",)),
    "limit marks": functools.partial(marked, marks=("<142.38", ">9")),
    "two marks": lambda parts: [p.replace({"-": "."}) if i else p
                                for i, p in enumerate(marked(marked(parts), ("--",)))],
}  # fmt: skip


def uneven(paths):
    """Make a line longer than the first one."""
    if paths[1].endswith(("csv", "tsv", "txt")):
        with open(paths[1], "a", encoding="utf-8") as file:
            file.write(SIGNS[paths[1][-3:]].join("1234") + "\n")
        return True
    return False


def twice(paths):
    """Give two columns one name."""
    for path, part in zip(paths, frames(names=["age", "age", "iron", "dose"]), strict=True):
        kind = path.rpartition(".")[2]
        if kind == "parquet":
            columns = [pyarrow.array(column) for column in part.to_numpy().T]
            pyarrow.parquet.write_table(pyarrow.table(columns, [*part.columns]), path)
        else:
            WRITERS[kind](part, path)
    return True


def unclear(paths):
    """Leave open whether commas are decimal points, in one file beside others."""
    frame = pandas.DataFrame(np.full((9, 3), "1,501"), columns=NAMES)
    frame.to_csv(paths[1], index=False, sep="\t" if paths[1].endswith("tsv") else ";")
    return paths[1].endswith(("csv", "tsv", "txt"))


SPOILT = {"uneven": uneven, "twice": twice, "unclear": unclear}


def outcome(paths, **options):
    try:
        return from_files.make(paths, **options)
    except FedcoreError as error:
        return error


def follow(paths, options, seen=()):
    """Follow every advice until a run succeeds; each next one succeeds or refuses other things."""
    found = outcome(paths, **options)
    if not isinstance(found, FedcoreError):
        return 1
    assert str(found) not in seen and len(seen) < 5
    done = 0
    for advice in found.advice:
        if advice.options:
            done += follow(paths, options | dict(advice.options), (*seen, str(found)))
    return done


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("fault", [*FAULTS, *SPOILT])
def test_every_advice_leads_on(tmp_path, kind, fault):
    parts = FAULTS[fault](frames()) if fault in FAULTS else frames()
    if kind == "npz" and any(p.select_dtypes(exclude="number").size for p in parts):
        return  # a matrix of numbers holds none
    if kind == "parquet" and "mark" in fault:
        return  # its columns have types
    paths = written(tmp_path, parts, kind)
    if fault in SPOILT and not SPOILT[fault](paths):
        return  # such a file cannot be written
    error = outcome(paths)
    if fault == "years" and kind in ("npz", "parquet"):  # names cannot be samples there
        assert not isinstance(error, FedcoreError)
        return
    assert isinstance(error, TableError) and error.client == error.file in paths
    assert follow(paths, {}) > 0
    # The same by the command line, as printed.
    told = call("run", "ssi", *paths, "-r", "1")
    assert told.exit_code == 1 and told.stderr.count("\n") == 1
    ways = re.findall(r"\((--[^()]*)\)", told.stderr)
    assert len(ways) == sum(bool(advice.options) for advice in error.advice)
    for way in ways:
        again = call("run", "ssi", *paths, "-r", "1", *shlex.split(way))
        assert again.exit_code == 0 or again.stderr != told.stderr, again.output
        assert again.exit_code in (0, 1)


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize(
    "fault", ["holes", "messy", "all", "marks", "one mark", "two marks", "limit marks"]
)
def test_one_advice_on_messy_files_keeps_all_that_was_measured(tmp_path, kind, fault):
    parts = FAULTS[fault](frames())
    if (kind == "npz" and fault != "holes") or (kind == "parquet" and "mark" in fault):
        return  # such a file cannot be written
    paths = written(tmp_path, parts, kind)
    (advice,) = outcome(paths).advice
    own = from_files.make(paths, **advice.options)
    for client, part in zip(own.problem.clients, parts, strict=True):
        values = part[NAMES].apply(pandas.to_numeric, errors="coerce").dropna()
        np.testing.assert_array_equal(client, values.to_numpy(float))
    if fault == "holes":
        assert advice.options == {"missing": "drop"}
        assert sum("lack a value" in guess.what for guess in own.guesses) == 2


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_without_a_number_that_is_left_are_told_at_once(tmp_path, kind):
    empty, texts, numbers = (str(tmp_path / f"{name}.{kind}") for name in ("none", "text", "some"))
    WRITERS[kind](frames()[0][:0], empty)
    WRITERS[kind](pandas.DataFrame({"a": ["x", "y"], "b": ["z", ""]}), texts)
    WRITERS[kind](frames()[0], numbers)
    for path, options in ((empty, {}), (texts, {}), (numbers, {"without": NAMES})):
        error = outcome([path], **options)
        assert isinstance(error, TableError) and error.file == path
        assert not any(advice.options for advice in error.advice)
    other = str(tmp_path / f"other.{kind}")
    WRITERS[kind](frames(names=["x", "y", "z"])[0], other)
    (advice,) = outcome([numbers, other]).advice
    assert not advice.options  # they have nothing in common


TITLES = ["A report, of 2023", "Cohort north;;;;", ",,,,", "made 2023-01-02", ""]


WIDE = ["Report;north", "Report;;", "Report;2023;", ";;north", "north;north;north"]


@pytest.mark.parametrize(
    ("titles", "more"),
    [(titles, "ab") for titles in (*itertools.combinations(TITLES, 1), TITLES, TITLES[::-1])]
    + [([title], "") for title in WIDE],  # about as wide as the table
)
@pytest.mark.parametrize("kind", SIGNS)
@pytest.mark.parametrize("point", ".,")
def test_lines_above_the_names_are_refused_with_the_option_that_skips_them(
    tmp_path, titles, more, kind, point
):
    path, part = tmp_path / f"a.{kind}", frames(names=[*NAMES, *more])[0].round(2)
    table = part.to_csv(index=False, sep=SIGNS[kind], decimal=point)
    path.write_text("".join(f"{title}\n" for title in titles) + table)
    options = {}
    if any(titles):  # a blank line is in nobody's way
        (way,) = outcome([str(path)]).advice
        options = {"skip_lines": len(titles) - (titles[-1] == "")}
        assert way.options == options
    found = own_files.read(path, **options)
    assert found.names == [*part.columns] and bool(options) == ("top" in str(found.guesses))
    np.testing.assert_array_equal(found.x, part.to_numpy())


@pytest.mark.parametrize("sign", [",", ";", "|"])
@pytest.mark.parametrize("whole", [True, False])
def test_a_title_above_two_columns_does_not_make_them_one(tmp_path, sign, whole):
    (path := tmp_path / "a.csv").write_text(
        "Report\n" + (part := frames(names=["a", "b"])[0].round(0 if whole else 3).astype(
            int if whole else float)).to_csv(index=False, sep=sign)
    )  # fmt: skip
    table = own_files.read(path, skip_lines=outcome([str(path)]).advice[0].options["skip_lines"])
    assert table.names == ["a", "b"]
    np.testing.assert_array_equal(table.x, part.to_numpy(float))


def test_rows_under_too_few_names_make_no_names(tmp_path):
    for rows in ("1,5,2\n3,5,4\n", "p1,5,2\np2,5,4\n", "x,<5,2\ny,5,4\n"):
        (path := tmp_path / "a.csv").write_text(f"age,dose\n{rows}")
        for options in ({}, {"missing": "drop"}):
            error = outcome([str(path)], **options)
            assert error.row == 2 and not any(way.options for way in error.advice)


@pytest.mark.parametrize("point", [",", "."])
@pytest.mark.parametrize("cell", ["1{}100", "12{}345{}678", "-1{}100"])
@pytest.mark.parametrize("mixed", [True, False])
def test_thousands_are_never_read_as_decimals(tmp_path, point, cell, mixed):
    values = [float(cell.format("", "")), 999.0, 2.0]
    texts = [f"{value:,.0f}" for value in values]
    texts = [text.replace(",", ".") if point == "," else text for text in texts]
    others = [f"3{point}5"] * 3 if mixed else ["3"] * 3
    path = str(tmp_path / "a.csv")
    pandas.DataFrame({"a": texts, "b": others}).to_csv(path, index=False, sep=";")
    wanted = np.column_stack([values, [3.5 if mixed else 3.0] * 3])
    np.testing.assert_array_equal(own_files.read(path, decimal=point).x, wanted)
    found = outcome([path])
    if isinstance(found, FedcoreError):
        assert texts[0] in str(found)
        assert {"decimal": point} in [dict(way.options) for way in found.advice]
        assert follow([path], {}) == len(found.advice)
    elif cell.count("{}") == 1:  # a single dot is the decimal point of every other file
        assert point == "," and not mixed
    else:
        np.testing.assert_array_equal(found.problem.clients[0], wanted)


@pytest.mark.parametrize("kind", WRITERS)
def test_numbers_that_look_like_ids_or_dates_are_told_with_their_option(tmp_path, kind):
    rng = np.random.default_rng(0)
    days = pandas.date_range("2022-12-01", periods=90).strftime("%Y%m%d").astype(float)
    parts = [part.assign(pid=rng.permutation(len(part)) + 5000.0 * k + 1,
                         day=rng.choice(days, len(part)), pulse=rng.integers(60, 70, len(part)))
             for k, part in enumerate(frames())]  # fmt: skip
    paths = written(tmp_path, parts, kind)
    told = [guess for guess in from_files.make(paths).guesses if "without" in guess.options]
    (options,) = [guess.options for guess in told]
    assert own_files.together(paths, **options)[0].names == [*NAMES, "pulse"]
    chosen = from_files.make(paths, columns=["pid", "age"])
    assert not any("without" in guess.options for guess in chosen.guesses)


@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_that_columns_are_matched_by_position_is_told_once(tmp_path, kind):
    parts = [part.to_numpy() for part in frames()]
    write = {
        "csv": lambda x, p: np.savetxt(p, x, delimiter=","),
        "npz": lambda x, p: np.savez(p, x),
    }
    guesses = from_files.make(written(tmp_path, parts, kind, write[kind])).guesses
    assert sum("position" in guess.what for guess in guesses) == 1
    guesses = from_files.make(written(tmp_path, frames(), kind)).guesses
    assert not any("position" in guess.what for guess in guesses)


@pytest.mark.parametrize("option", ["--columns", "--without"])
def test_several_columns_stand_in_one_option(tmp_path, option):
    paths = written(tmp_path, frames(names=["a", "b, c", "d", "e"]), "csv")
    given = [option, 'a, "b, c"', option, "d"]
    done = call("run", "ssi", *paths, "-r", "1", *given)
    kept = "3 columns: a, b, c, d" if option == "--columns" else "1 column: e"
    assert done.exit_code == 0 and kept in done.stdout


def test_a_file_is_no_client_where_a_column_says_whose_a_row_is(tmp_path):
    paths = written(tmp_path, holes([p.assign(ward=i // 2) for i, p in enumerate(frames())]), "csv")
    error = outcome(paths, by="ward")
    assert error.file == paths[0] and error.client is None
    error = outcome([*paths, str(tmp_path / "gone.csv")])
    assert error.file == error.client == str(tmp_path / "gone.csv")


@pytest.mark.parametrize("kind", ["csv", "tsv", "txt"])
@pytest.mark.parametrize("at", [1, 7])
def test_lines_with_too_few_or_too_many_cells_are_left_out_by_request(tmp_path, kind, at):
    part, path = frames()[0], tmp_path / f"a.{kind}"
    WRITERS[kind](part, path)
    lines = path.read_text().splitlines()
    lines[at:at] = [lines[at].rpartition(SIGNS[kind])[0]]
    path.write_text("\n".join([*lines, f"{lines[-1]}{lines[-1]}"]))
    refused(lambda: own_files.read(path), TableError, f"line {at + 1}:")
    table = own_files.read(path, missing="drop")
    np.testing.assert_array_equal(table.x, part.to_numpy())
    assert any("2 lines" in guess.what for guess in table.guesses)


@pytest.mark.parametrize("kind", ["csv", "tsv", "txt", "parquet"])
def test_all_unfit_columns_are_told_at_once_with_counts(tmp_path, kind):
    paths = written(tmp_path, FAULTS["all"](frames()), kind)
    error = outcome(paths)
    assert {one.column for one in error.parts} == {"pid", "admitted", "dose", "iron", "ward"}
    counts = {(one.file, one.column): one.cells for one in error.parts if one.kind == "missing"}
    assert counts == {(paths[i], c): n for i in (0, 2) for c, n in (("dose", 3), ("iron", 1))}
    assert [one.file for one in error.parts if one.kind == "absent"] == [paths[0]]
    one = own_files.read(paths[1], without=["pid", "admitted", "ward"])
    assert list(one.names) == NAMES


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("lacks", [False, True])
def test_advice_on_very_many_columns_can_be_typed(tmp_path, kind, lacks):
    parts = frames() if not lacks else holes(frames())
    many = pandas.DataFrame({f"a long name {i}": ["x"] * 30 for i in range(400)})
    paths = written(tmp_path, [p.join(many.iloc[: len(p)]) for p in parts], kind)
    told = call("run", "ssi", *paths, "-r", "1")
    (way,) = re.findall(r"\((--[^()]*)\)", told.stderr)
    ran("run", "ssi", *paths, "-r", "1", *shlex.split(way))


# Bookkeeping of writers.

INDICES = {
    "range": lambda part: part,
    "rest of a filter": lambda part: part[part.iloc[:, 0] > 0],
    "from 1": lambda part: part.set_index(np.arange(1, len(part) + 1)),
    "texts": lambda part: part.set_index(np.array([f"p{i}" for i in range(len(part))])),
    "named": lambda part: part.rename_axis("index").reset_index(),
    "R's": lambda part: part.assign(rownames=np.arange(1, len(part) + 1)),
    "twice": lambda part: part.reset_index(drop=True).rename_axis(None),
}


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("kind", ["csv", "txt", "parquet", "npz"])
def test_what_a_writer_adds_is_no_feature_in_any_format(tmp_path, index, kind):
    parts = [INDICES[index](part) for part in frames()]
    write = {
        "csv": lambda f, p: f.to_csv(p), "txt": lambda f, p: f.to_csv(p, sep=";", decimal=","),
        "parquet": lambda f, p: f.to_parquet(p, index=True),
        "npz": lambda f, p: npz(f.reset_index(names="__index_level_0__")
                                if f.index.dtype.kind in "iu" else f, p),
    }[kind]  # fmt: skip
    paths = written(tmp_path, parts, kind, write)
    tables = own_files.together(paths)
    for table, part in zip(tables, parts, strict=True):
        assert list(table.names) == NAMES
        np.testing.assert_array_equal(table.x, part[NAMES].to_numpy())
    if kind == "csv":
        assert all(table.guesses for table in tables)
        taken = own_files.read(paths[0], **tables[0].guesses[-1].options) if index != "texts" else 0
        assert taken == 0 or taken.x.shape[1] > 3


def test_a_column_that_counts_rows_in_one_file_is_no_feature_in_the_others(tmp_path):
    parts = [p.assign(id=np.arange(len(p)) * (1 + i)) for i, p in enumerate(frames())]
    for table in own_files.together(written(tmp_path, parts, "csv")):
        assert list(table.names) == NAMES
    measured = [p.assign(id=p.age * 2) for p in frames()]
    assert len(own_files.together(written(tmp_path, measured, "csv"))[0].names) == 4


# Headers.

HEADS = {
    "years": lambda rng, d: 2000 + np.arange(d),
    "wavelengths": lambda rng, d: [f"{400 + 0.5 * i}" for i in range(d)],
    "uneven wavelengths": lambda rng, d: np.sort(rng.uniform(400, 700, d)).round(1),
    "codes": lambda rng, d: [f"{i:03d}" for i in rng.permutation(d)],
    "down": lambda rng, d: np.arange(d, 0, -1),
    "floats": lambda rng, d: np.arange(d) * 1.0,
    "ids": lambda rng, d: rng.choice(10**6, d, replace=False) + 1000,
    "texts": lambda rng, d: [f"x{i}" for i in range(d)],
    "dates": lambda rng, d: [f"2020-01-{i + 1:02d}" for i in range(d)],
    "a text and numbers": lambda rng, d: ["x1", *range(2, d + 1)],
}


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("d", [3, 8])
@pytest.mark.parametrize("ids", [False, True])
def test_names_are_never_a_sample(tmp_path, head, d, ids):
    """Numbers above numbers, such as years, are the one case of doubt."""
    rng = np.random.default_rng(d)
    x, path = rng.standard_normal((40, d)), tmp_path / "a.csv"
    names = [*map(str, HEADS[head](rng, d))]
    frame = pandas.DataFrame(x, columns=names)
    if ids:
        frame.insert(0, "id", [f"p{i}" for i in range(40)])
    frame.to_csv(path, index=False)
    plain, without = head in ("texts", "a text and numbers", "dates"), ["id"] * ids
    if head == "years":
        refused(lambda: own_files.read(path), TableError)
    try:
        table = own_files.read(path, without=without * plain)
    except TableError as error:
        assert [dict(way.options) for way in error.advice] == [{"header": True}, {"header": False}]
        table = own_files.read(path, header=True, without=without)
    np.testing.assert_array_equal(table.x, x)
    assert list(table.names) == names
    if plain:
        assert not any("header" in guess.options for guess in table.guesses)
    else:
        assert own_files.read(path, header=False, without=["0"] * ids).x.shape == (41, d)


@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("grows", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_numbers_in_the_first_line_are_data_or_asked_about(tmp_path, ids, grows, whole):
    """Whole numbers and growing ones may be names: years, wavelengths. Both answers lead on."""
    x = np.random.default_rng(0).integers(-4000, 4000, (30, 5)) * (1 if whole else 0.001)
    x[0] = np.sort(x[0])[:: 1 if grows else -1]
    frame = pandas.DataFrame(x.round(3))
    if ids:  # a text that may be a name beside numbers that may be
        frame.insert(0, "id", [f"p{i}" for i in range(30)])
    path = str(tmp_path / "a.csv")
    frame.to_csv(path, index=False, header=False)
    values = frame.iloc[:, int(ids) :]
    if whole or grows:
        told = refused(lambda: own_files.read(path), TableError)
        for way, rows in zip(told.advice, (29, 30), strict=True):
            without = {True: frame.iloc[0, :1].tolist(), False: ["0"]}[way.options["header"]] * ids
            table = own_files.read(path, without=without, **way.options)
            np.testing.assert_array_equal(table.x, values[30 - rows :])
    else:
        table = own_files.read(path, without=["0"] * ids)
        assert {"header": True} in [dict(guess.options) for guess in table.guesses]
        np.testing.assert_array_equal(table.x, values)


# What a parser reads otherwise than raw text.


@pytest.mark.parametrize("sign", [",", ";", "\t"])
@pytest.mark.parametrize("names", [["a,b", "c;d;e", "f\tg"], ["weight, kg", "height, cm", 'a "b"'],
                                   ["one\nline", "two", "three"], ["ä", "b ", "ß"]])  # fmt: skip
@pytest.mark.parametrize("decimal", [".", ","])
def test_separators_in_names_and_decimal_commas_are_read(tmp_path, sign, names, decimal):
    part = frames()[0].set_axis(names, axis=1)
    path = str(tmp_path / "a.csv")
    part.to_csv(path, index=False, sep=sign, decimal=decimal)
    table = own_files.read(path)
    assert list(table.names) == [name.strip() for name in names]
    np.testing.assert_array_equal(table.x, part.to_numpy())


@pytest.mark.parametrize("late", ["0.5", "x", "", "1,5", "1e400"])
def test_a_cell_counts_wherever_it_stands(tmp_path, late):
    (path := tmp_path / "a.csv").write_text("a;b\n" + "1;2\n" * 400_000 + f"{late};3\n")
    if late in ("0.5", "1,5"):
        assert own_files.read(path).x[-1].tolist() == [float(late.replace(",", ".")), 3]
        return
    told = refused(lambda: own_files.read(path), TableError)
    (one,) = told.parts
    assert (one.column, one.cells, one.row) == ("a", 1, 400_000)


@pytest.mark.parametrize("values", [["a", "b", ""], [1.0, np.nan, 2.0]])
def test_a_row_without_a_label_is_no_class(tmp_path, values):
    np.savez(tmp_path / "a.npz", x=np.eye(3), y=values)
    with pytest.raises(TableError) as told:
        from_files.make([str(tmp_path / "a.npz")], labels="y", classes=True)
    assert told.value.column == "y" and told.value.row == (1 if "a" not in values else 2)
    own = from_files.make(
        [str(tmp_path / "a.npz")], labels="y", classes=True, **told.value.advice[0].options
    )
    assert own.problem.clients.shapes == [(2, 3)]


def test_an_option_says_otherwise(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a|b\n1|2\n3|4\n")
    np.testing.assert_array_equal(own_files.read(path, delimiter="|").x, [[1, 2], [3, 4]])
    path.write_text("sep=;\na;b\n1,5;2\n3;4\n")
    np.testing.assert_array_equal(own_files.read(path).x, [[1.5, 2], [3, 4]])


def test_a_misspelt_name_is_answered_whatever_its_case(tmp_path):
    path = written(tmp_path, [frames()[0].rename(columns={"age": "BMI"})], "csv")[0]
    for options in ({"columns": ["bmi"]}, {"without": ["bmi"]}, {"apart": ["bmi"]}):
        with pytest.raises(TableError, match="did you mean 'BMI'"):
            own_files.read(path, **options)


# Types.

TYPES = {
    "bool": lambda x: x > 0, "int8": lambda x: x.astype(np.int8),
    "uint64": lambda x: (x > 0) * 2**60,
    "float32": lambda x: x.astype(np.float32),
    "Int64": lambda x: pandas.array((x * 9).astype(int), dtype="Int64"),
    "Float64": lambda x: pandas.array(x, dtype="Float64"),
    "boolean": lambda x: pandas.array(x > 0, dtype="boolean"),
    "Decimal": lambda x: [Decimal(f"{v:.2f}") for v in x],
    "arrow": lambda x: pandas.array(x, dtype="double[pyarrow]"),
    "arrow int": lambda x: pandas.array((x * 9).astype(int), dtype="int32[pyarrow]"),
    "object": lambda x: pandas.array([*x.tolist()], dtype=object),
}  # fmt: skip
NO_NUMBERS = {
    "text": lambda n: ["a"] * n, "digits": lambda n: ["1"] * n,
    "dates": lambda n: [dt.date(2020, 1, 2)] * n, "times": lambda n: [dt.datetime(2020, 1, 2)] * n,
    "category": lambda n: pandas.Categorical(["1", "2"] * (n // 2)),
    "durations": lambda n: [dt.timedelta(1)] * n,
}  # fmt: skip


def as_frames(frame):
    polars = pytest.importorskip("polars")
    arrow = pyarrow.Table.from_pandas(frame, preserve_index=False)
    return {"pandas": frame, "polars": polars.from_arrow(arrow), "arrow": arrow}


@pytest.mark.parametrize("kind", TYPES)
def test_the_same_types_are_numbers_in_files_and_frames(tmp_path, kind):
    frame = frames()[0]
    frame["more"] = TYPES[kind](frame["age"].to_numpy())
    wanted = np.column_stack([*frame[NAMES].to_numpy().T, [float(v) for v in frame["more"]]])
    frame.to_parquet(tmp_path / "a.parquet")
    np.testing.assert_array_equal(own_files.read(tmp_path / "a.parquet").x, wanted)
    for given_frame in as_frames(frame).values():
        np.testing.assert_array_equal(check_matrix(given_frame, "x"), wanted)
    if kind not in ("float32", "Decimal"):
        frame.to_csv(tmp_path / "a.csv", index=False)
        np.testing.assert_array_equal(own_files.read(tmp_path / "a.csv").x, wanted)


@pytest.mark.parametrize("kind", NO_NUMBERS)
@pytest.mark.parametrize("lacks", [False, True])
def test_the_same_types_are_none_in_files_and_frames(tmp_path, kind, lacks):
    frame = frames()[0]
    frame["more"] = NO_NUMBERS[kind](len(frame))
    frame["whole"] = pandas.array([None, *range(29)] if lacks else range(30), dtype="Int64")
    frame.to_parquet(tmp_path / "a.parquet")
    told = refused(lambda: own_files.read(tmp_path / "a.parquet"), TableError)
    assert [one.column for one in told.parts] == ["more", "whole"][: 1 + lacks]
    for form in as_frames(frame).values():
        read = functools.partial(check_matrix, form, "client 3")
        told = refused(read, TableError, number=None, client="client 3")
        assert {one.column for one in told.parts} == {"more", *["whole"] * lacks}


@pytest.mark.parametrize("kind", ["pandas", "arrow"])
def test_of_columns_of_one_name_client_and_column_are_told(kind):
    frame = pandas.DataFrame(np.eye(4), columns=["age", "dose", "age", "iron"])
    form = frame if kind == "pandas" else pyarrow.table([*np.eye(4)], [*frame.columns])
    told = refused(lambda: check_clients([form]), InputError)
    assert (told.column, told.client, told.number) == ("age", "client 0", 0)


@pytest.mark.parametrize("first", [True, False])
def test_a_client_without_names_among_others_is_told(first):
    for form in as_frames(frames()[0]).values():
        with pytest.raises(InputError) as told:
            check_clients([form, np.eye(3)][:: 1 if first else -1])
        assert told.value.number == int(first)


def test_an_index_that_pandas_wrote_into_arrow_is_no_feature():
    part = frames()[0]
    table = pyarrow.Table.from_pandas(part[part.age > 0])
    refused(lambda: check_matrix(table, "client 0"), TableError, column="__index_level_0__")


# NPZ.


@pytest.mark.parametrize("columns", [np.array(NAMES), np.array(NAMES, "S"), np.array([1, 2, 3])])
def test_names_in_an_npz_file_may_be_texts_bytes_or_numbers(tmp_path, columns):
    np.savez(tmp_path / "a.npz", x=np.eye(3), columns=columns)
    names = list(own_files.read(tmp_path / "a.npz").names)
    assert names == (NAMES if columns.dtype.kind in "US" else ["1", "2", "3"])


X = np.round(np.random.default_rng(0).standard_normal((12, 3)), 3)


@pytest.mark.parametrize("form", ["objects", "texts", "bytes", "complex"])
@pytest.mark.parametrize("name", ["m", "columns", "y"])
@pytest.mark.parametrize("kind", ["npz", "npy"])
def test_arrays_that_hold_no_numbers_are_refused_and_read_if_saved_anew(tmp_path, form, name, kind):
    make = {"objects": object, "texts": str, "bytes": "S", "complex": complex}[form]
    arrays = {"m": X, "columns": np.array(["0", "1", "2"]), "y": np.arange(12)}
    arrays[name] = arrays[name].astype(make)
    options, path = {"apart": ["y"]}, tmp_path / f"a.{kind}"
    if kind == "npy":
        np.save(path, arrays["m"])
        options = {}
    else:
        np.savez(path, **arrays)
    if (form in ("texts", "bytes") and name != "m") or (kind == "npy" and name != "m"):
        np.testing.assert_array_equal(own_files.read(path, **options).x, X)
        return
    with pytest.raises(TableError) as told:
        own_files.read(path, **options)
    assert told.value.column == (name if kind == "npz" else "x")


def test_labels_of_objects_that_nobody_asks_for_are_left(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.eye(3), y=np.arange(3).astype(object))
    assert own_files.read(tmp_path / "a.npz").x.shape == (3, 3)


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("door", [fedcore.run, fedcore.FederatedPCA])
def test_a_path_in_place_of_a_matrix_is_read_by_the_advice(tmp_path, kind, door):
    (path,) = written(tmp_path, frames()[:1], kind)
    call = functools.partial(door, "ssi", n_components=1) if door is fedcore.run else door(1).fit
    for given_path in (path, [path]):
        with pytest.raises(InputError) as told:
            call(given_path)
        pasted: dict = {}
        exec(told.value.advice[0].call, pasted)
        assert pasted["matrix"].shape == (30, 3)


@pytest.mark.parametrize("kind", ["npz", "parquet", "svm", "csv"])
def test_of_a_folder_the_files_are_named_that_lie_in_it(tmp_path, kind):
    (folder := tmp_path / "tables").mkdir()
    (folder / f"a.{kind}").touch()
    (folder / "readme.md").touch()
    said = call("run", "ssi", str(folder), "-r", "1")
    assert said.exit_code == 1 and f"tables/*.{kind}" in said.stderr


def test_options_that_name_what_is_no_feature_or_nothing_are_refused(tmp_path):
    path = written(tmp_path, text(frames()), "csv")[0]
    assert list(own_files.read(path, without="pid").names) == NAMES
    (tmp_path / "a.svm").write_text("1 1:2 2:3\n2 1:1\n")
    for file, options in (
        (path, {"columns": ["agee"]}), (path, {"columns": ["pid"]}), (path, {"columns": []}),
        (path, {"without": ["pid", *NAMES]}), (tmp_path / "a.svm", {"columns": ["label"]}),
        (tmp_path / "a.svm", {"without": ["3"]}), (path, {"missing": "fill"}),
        (path, {"decimal": ":"}), (path, {"delimiter": ";;"}), (path, {"delimiter": 5}),
        (path, {"encoding": 5}), (path, {"header": "yes"}), (path, {"na": [None]}),
        (path, {"na": b"N"}), (path, {"na": None}), (path, {"without": [True]}),
    ):  # fmt: skip
        with pytest.raises(FedcoreError):
            own_files.read(file, **options)
    assert list(own_files.read(path, columns=["iron", "age", "iron"]).names) == ["iron", "age"]


@pytest.mark.parametrize(
    "given",
    ["-999", -999, -999.0, [-999], np.array(-999), np.array([-999]), {"-999"}],
    ids=repr,
)
@pytest.mark.parametrize("ending", ["csv", "npy"])
def test_a_number_may_mark_missing_values(tmp_path, ending, given):
    path = tmp_path / f"a.{ending}"
    rows = np.array([[1.5, 2.0], [-999.0, 4.0], [3.0, -999.0]])
    if ending == "csv":
        path.write_text("a,b\n1.5,2\n-999,4\n3,-999\n")
    else:
        np.save(path, rows)
    assert own_files.read(path, na=given, missing="drop").x.tolist() == rows[:1].tolist()


def test_columns_of_libsvm_files_may_be_named_by_numbers(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:2 2:3\n2 1:1\n")
    for without in (2, [2], "2"):
        x = own_files.read(tmp_path / "a.svm", without=without).x
        assert x.toarray()[:, 0].tolist() == [2, 1]


@pytest.mark.parametrize("form", [str, Path, lambda path: [path], lambda path: iter([path])])
def test_several_tables_may_be_one_path_or_any_iterable(tmp_path, form):
    path = written(tmp_path, text(frames()), "csv")[0]
    (table,) = own_files.together(form(path), without="pid")
    assert list(table.names) == NAMES


def test_no_file_at_all_is_refused():
    refused(lambda: own_files.together([]), FedcoreError, "no file is given")


def test_files_without_names_agree_where_one_has_texts(tmp_path):
    for i, last in enumerate(("1.25", "a")):
        (tmp_path / f"{i}.csv").write_text(f"1.5,2.5,{last}\n" * 5)
    paths = [tmp_path / "0.csv", tmp_path / "1.csv"]
    told = refused(lambda: own_files.together(paths, header=False), TableError)
    assert [one.column for one in told.parts] == ["2"]
    found = own_files.together(paths, header=False, without=["2"])
    assert [list(table.names) for table in found] == [["0", "1"]] * 2


# LIBSVM.


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), zero=st.booleans(), queries=st.booleans(),
       labels=st.sampled_from(["real", "class"]))  # fmt: skip
def test_libsvm_is_read_as_scikit_learn_writes_it(tmp_path_factory, seed, zero, queries, labels):
    sklearn = pytest.importorskip("sklearn.datasets")
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((12, 6)) * (rng.random((12, 6)) < 0.5)
    x[0] = 1
    y = rng.standard_normal(12) if labels == "real" else rng.integers(-1, 2, 12)
    qid = np.sort(rng.integers(0, 4, 12)) if queries else None
    path = tmp_path_factory.mktemp("svm") / "a.svm"
    sklearn.dump_svmlight_file(x, y, str(path), zero_based=zero, query_id=qid, comment="é x:1")
    if zero:
        told = refused(lambda: own_files.read(path), FedcoreError)
        assert dict(told.advice[0].options) == {"zero_based": True}
    apart = ["label", *["qid"] * queries]
    table = own_files.read(path, apart=apart, zero_based=zero)
    np.testing.assert_allclose(table.x.toarray(), x, rtol=1e-15)
    np.testing.assert_allclose(table.apart["label"].astype(float), y, rtol=1e-15)
    assert list(table.names) == [str(i + (not zero)) for i in range(6)]
    if queries:
        np.testing.assert_array_equal(table.apart["qid"].astype(int), qid)


def test_libsvm_costs_its_numbers_and_not_its_largest_index(tmp_path):
    costs = []
    for width in (2_000, 2_000_000):
        paths = [tmp_path / f"{i}.svm" for i in range(2)]
        for i, path in enumerate(paths):
            path.write_text("".join(f"{k} {k + 1}:1 {width - i}:2\n" for k in range(40)))
        costs.append(peak(lambda paths=paths: own_files.together(paths)))
    assert costs[1] < 5 * costs[0] + 50e6  # 8 bytes a column, and no object
    with pytest.raises(FedcoreError, match="no column '7000000'"):
        own_files.together(paths, without=["7000000"])
    assert own_files.together(paths, without=["7"])[0].x.shape[1] == 1_999_999


# Tables that lie about their size.


def lying_sparse(path, kind, shape):
    parts = {"format": np.array(kind.encode()), "shape": np.array(shape), "data": np.ones((1, 1))}
    if kind == "dia":
        parts["offsets"] = np.zeros(1, int)
    else:
        parts["data"] = np.ones(1)
        keys = ("row", "col") if kind == "coo" else ("indices", "indptr")
        parts |= dict.fromkeys(keys, np.zeros(1 + (kind != "coo"), int))
    np.savez(path, **parts)


def long_parquet(path):
    table = pyarrow.table({"a": pyarrow.array(np.zeros(10**6))})
    with pyarrow.parquet.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for _ in range(200):
            writer.write_table(table)


SHAPES = [(10**6, 2**40), (2**31, 2**31), (2**40, 3), (2**62, 2**62), (-1, 3)]
LIARS = {
    "long.parquet": long_parquet,
    "index.svm": lambda p: p.write_text("1 1:1 2000000000:1\n"),
    "digits.svm": lambda p: p.write_text(f"1 1:1 {'9' * 500}:1\n"),
    **{f"{kind}{i}.npz": lambda p, kind=kind, shape=shape: lying_sparse(p, kind, shape)
       for kind in ("csr", "csc", "coo", "dia")
       for i, shape in enumerate(SHAPES)},
}  # fmt: skip


@pytest.mark.parametrize("name", LIARS)
def test_tables_that_lie_about_their_size_are_refused_at_once(tmp_path, name):
    path = tmp_path / name
    LIARS[name](path)

    def read():
        refused(lambda: own_files.read(path), FedcoreError, str(path))

    assert peak(read) < 20e6


def test_a_shape_of_anything_is_no_shape(tmp_path):
    for shape in ([3.0, 2.0], [3], ["a", "b"], [[1, 2]], [3, 2, 2]):
        parts = {"format": np.array(b"csr"), "data": np.ones(1), "indices": np.zeros(1, int)}
        np.savez(tmp_path / "a.npz", shape=np.array(shape), indptr=np.zeros(4, int), **parts)
        refused(lambda: own_files.read(tmp_path / "a.npz"), FedcoreError)


def test_what_scipy_writes_is_taken_in_any_form(tmp_path):
    x = np.random.default_rng(0).standard_normal((30, 8)) * (np.arange(8) % 2)
    for kind, name in itertools.product(("csr", "csc", "coo", "dia", "bsr"), ("array", "matrix")):
        path = tmp_path / f"{kind}.npz"
        scipy.sparse.save_npz(path, getattr(scipy.sparse, f"{kind}_{name}")(x))
        np.testing.assert_array_equal(own_files.read(path).x.toarray(), x)

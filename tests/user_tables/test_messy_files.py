"""Files as three hospitals export them, each in its own way: all are read as pandas wrote them."""

from __future__ import annotations

import itertools
import re
import shlex

import numpy as np
import pytest

from commands import call, ran
from fedcore.errors import FedcoreError, TableError
from fedcore.experiments import from_files
from fedcore.user_tables import own_files
from own_tables import NAMES, written
from refused import refused

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


def values(seed=0, rows=40):
    """Draw numbers below and above a thousand, with two places."""
    return np.random.default_rng(seed).uniform([20, 0, 900], [90, 9, 9000], (rows, 3)).round(2)


def text(value, point, groups):
    """Write a number with two places, a decimal point and a sign between thousands."""
    return f"{value:,.2f}".replace(",", "_").replace(".", point).replace("_", groups)


def export(path, x, sign=",", point=".", groups="", names=NAMES, coding="utf-8"):
    frame = pandas.DataFrame(x, columns=names).map(text, point=point, groups=groups)
    frame.to_csv(path, index=False, sep=sign, encoding=coding)
    return str(path)


DIALECTS = [
    (sign, point, groups)
    for sign, point in itertools.product(",;\t|", ".,")
    for groups in ("", {".": ",", ",": "."}[point], " ", "\u00a0", "\u202f", "'")
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("first", [True, False])
def test_each_file_has_its_own_signs(tmp_path, dialect, first):
    sign, point, groups = dialect
    x = [values(seed) for seed in range(3)]
    paths = [export(tmp_path / f"{i}.csv", part) for i, part in enumerate(x)]
    export(paths[0 if first else 2], x[0 if first else 2], sign, point, groups)
    tables = own_files.together(paths)
    for table, part in zip(tables, x, strict=True):
        np.testing.assert_array_equal(table.x, part)
    told = [guess.what for table in tables for guess in table.guesses]
    assert all(paths[0 if first else 2] in what for what in told)
    cells = [text(value, point, groups) for value in np.ravel(x)]
    odd = [what for what in told if any(cell in what for cell in cells)]
    assert len(odd) == (point == "," or groups != "") and len(told) == len(odd) + (sign != ",")


@pytest.mark.parametrize("dialect", [one for one in DIALECTS if one[0] == ";"])
def test_labels_have_the_signs_of_their_file(tmp_path, dialect):
    paths = [export(tmp_path / "0.csv", values(0), *dialect), export(tmp_path / "1.csv", values(1))]
    clients = from_files.make(paths, labels="iron").problem.clients
    for k in range(2):
        np.testing.assert_array_equal(clients[k], values(k)[:, :2])
        np.testing.assert_array_equal(clients.labels[k], values(k)[:, 2])
    path = tmp_path / "2.csv"  # nothing but the labels shows the decimal point
    path.write_text("age;iron\n" + "".join(f"{i};{i},5\n" for i in range(20)))
    found = from_files.make([str(path)], labels="iron").problem.clients
    np.testing.assert_array_equal(found.labels[0], np.arange(20) + 0.5)


@pytest.mark.parametrize("dialect", [one for one in DIALECTS if one[2] in ("", ".", ",")])
def test_an_option_that_a_file_contradicts_is_refused_and_dropped(tmp_path, dialect):
    sign, point, groups = dialect
    path = export(tmp_path / "a b.csv", x := values(), sign, point, groups)
    options = {"delimiter": {";": "|"}.get(sign, ";")}
    told = refused(lambda: own_files.together([path], **options), TableError, file=path, row=0)
    (advice,) = told.advice
    np.testing.assert_array_equal(own_files.read(path, **options | advice.options).x, x)
    said = call("run", "ssi", path, "-r", 1, "--delimiter", options["delimiter"])
    assert said.exit_code == 1 and "drop --delimiter" in said.stderr


@pytest.mark.parametrize("dialect", [one for one in DIALECTS if one[2] in ("", ".", ",")])
@pytest.mark.parametrize("asked", [".", ","])
def test_a_decimal_point_that_a_file_shows_alone_is_read_whatever_is_asked(
    tmp_path, dialect, asked
):  # fmt: skip
    path = export(tmp_path / "a.csv", x := values(), *dialect)
    table = own_files.read(path, decimal=asked)
    np.testing.assert_array_equal(table.x, x)
    cells = [text(value, *dialect[1:]) for value in np.ravel(x)]
    told = any(cell in guess.what for cell in cells for guess in table.guesses)
    assert told == (asked == "," or dialect[1:] != (".", ""))


@pytest.mark.parametrize("point", [".", ","])
def test_only_the_file_that_leaves_it_open_is_asked_about_and_both_answers_lead_on(tmp_path, point):
    clear = export(tmp_path / "clear.csv", x := values(), ";", point)
    asked = tmp_path / "asked.csv"
    asked.write_text("age;dose;iron\n1,501;2;3\n4,250;5;6\n")
    told = refused(lambda: own_files.together([clear, asked]), TableError)
    assert (told.file, told.column, told.row) == (str(asked), "age", 0)
    assert {way.options["decimal"] for way in told.advice} == {".", ","}
    for way in told.advice:
        one, other = own_files.together([clear, asked], **way.options)
        np.testing.assert_array_equal(one.x, x)
        factor = 1 if way.options["decimal"] == "," else 1000
        np.testing.assert_allclose(other.x[:, 0], np.array([1.501, 4.25]) * factor, rtol=1e-15)


@pytest.mark.parametrize("known", ["3,7", "2,5"])
def test_three_places_beside_a_decimal_comma_are_no_thousands_without_a_word(tmp_path, known):
    path = tmp_path / "a.csv"
    path.write_text(f"age;dose\n{known};36.512\n4;37.102\n")
    told = refused(lambda: own_files.read(path), TableError, column="dose", row=0)
    (advice,) = told.advice
    table = own_files.read(path, **advice.options)
    assert table.x[0].tolist() == [float(known.replace(",", ".")), 36512]
    path.write_text(f"age;dose\n{known};1.501,30\n4;2.250\n")  # here dots do separate thousands
    assert own_files.read(path).x[:, 1].tolist() == [1501.3, 2250]


@pytest.mark.parametrize("point", [".", ","])
@pytest.mark.parametrize("typed", ["a cell", "cells of whole numbers", "days"])
def test_most_columns_say_what_the_decimal_point_is(tmp_path, point, typed):
    other = {".": ",", ",": "."}[point]
    path = export(tmp_path / "a.csv", x := values(), ";", point)
    frame = pandas.read_csv(path, sep=";", dtype=str)
    odd = {"a cell": ["dose"], "days": ["day"]}.get(typed, ["count"])
    frame["count"] = "3"
    if typed == "days":  # without a year
        frame["day"] = [f"{1 + i % 28:02d}{other}{1 + i % 12:02d}" for i in range(len(frame))]
    else:
        frame.loc[[4, 9], odd] = f"3{other}7"
    frame.to_csv(path, sep=";", index=False)
    told = refused(lambda: own_files.read(path), TableError)
    assert [one.column for one in told.parts] == odd
    found = own_files.read(path, **told.advice[0].options)
    keep = [i for i in range(len(x)) if typed == "days" or i not in (4, 9)]
    np.testing.assert_array_equal(found.x[:, :3], x[keep])


CODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-16-le", "latin-1", "cp1252"]


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("name", ["a.csv", "a b's.txt"])
def test_a_text_in_any_coding_is_read_or_the_advice_makes_it_so(
    tmp_path, coding, late, marked, name
):  # fmt: skip
    size = "größe – €" if coding == "cp1252" else "größe"
    lines = [f"{size};b;c" if not late else "a;b;c", *["1,5;2;3"] * 5000]
    lines += ["0,5;2;ü" if late else "0,5;2;4"]
    mark = "\ufeff" * (marked and coding in ("utf-16-be", "utf-16-le"))
    path = tmp_path / name
    path.write_bytes((mark + "\r\n".join(lines)).encode(coding))
    options = {"without": ["c"]}
    try:
        table = own_files.read(path, **options)
    except FedcoreError as error:
        assert coding in ("latin-1", "cp1252") and error.file == str(path)
        assert error.row == (5001 if late else 0)
        (advice,) = error.advice
        table = own_files.read(path, **options, **advice.options)
    assert table.names == ["a" if late else size, "b"]
    np.testing.assert_array_equal(table.x, [[1.5, 2]] * 5000 + [[0.5, 2]])


SENTINELS = [-999, 9999, -99.0, -9999.25, 99999, 123456789.123456789]


@pytest.mark.parametrize("kind", ["csv", "txt", "parquet", "npz"])
@pytest.mark.parametrize("sentinel", SENTINELS)
@pytest.mark.parametrize("shared", [True, False])
def test_a_value_far_from_all_others_that_occurs_again_is_told(tmp_path, kind, sentinel, shared):
    rng = np.random.default_rng(0)
    parts = [rng.normal([50, 3, 7], [9, 1, 2], (30, 3)).round(2) for _ in range(2)]
    for i in (0, 1) if shared else (1, 1):
        parts[i][rng.choice(30, 3, replace=False), 1] = sentinel
    paths = written(tmp_path, [pandas.DataFrame(x, columns=NAMES) for x in parts], kind)
    done = ran("run", "ssi", *paths, "-r", 1)
    (line,) = [line for line in done.stderr.splitlines() if "--na" in line]
    assert paths[1] in line and (paths[0] in line) == shared
    assert "'dose'" in line and f"{sentinel:.9g}" in line
    way = re.search(r"\((--na.*)\)$", line)[1]
    again = call("run", "ssi", *paths, "-r", 1, *shlex.split(way))
    assert again.exit_code == 0 and not re.search("--na", again.stderr)
    (guess,) = [g for g in from_files.make(paths).guesses if "na" in g.options]
    for client, x in zip(
        from_files.make(paths, **guess.options).problem.clients, parts, strict=True
    ):
        np.testing.assert_array_equal(client, x[x[:, 1] != sentinel])
    told = refused(lambda: own_files.together(paths, na=guess.options["na"]), TableError)
    assert {one.column for one in told.parts} == {"dose"}  # nothing is left out unasked


MEASURED = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "lognormal": lambda rng, n: rng.lognormal(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n).round(1),
    "truth": lambda rng, n: rng.integers(0, 2, n),
    "stages": lambda rng, n: rng.integers(1, 5, n),
    "counts": lambda rng, n: rng.poisson(2, n),
    "many zeros": lambda rng, n: rng.uniform(1, 9, n).round(1) * (rng.random(n) < 0.3),
    "ages": lambda rng, n: rng.integers(18, 92, n),
    "years": lambda rng, n: rng.integers(1930, 2020, n),
    "pH": lambda rng, n: rng.normal(7.4, 0.05, n).round(2),
    "incomes": lambda rng, n: rng.normal(48_000, 9000, n).round(),
    "doses": lambda rng, n: rng.choice([0, 5, 10, 20, 50, 100], n),
    "titres": lambda rng, n: 10.0 * 2 ** rng.integers(0, 9, n),
}


@pytest.mark.parametrize("kind", MEASURED)
@pytest.mark.parametrize("rows", [15, 200])
def test_what_is_measured_is_rarely_told(tmp_path, kind, rows):
    told = 0
    for seed in range(20):
        x = np.column_stack([MEASURED[kind](np.random.default_rng(seed + 99 * j), rows)
                             for j in range(3)])  # fmt: skip
        np.savez(tmp_path / "a.npz", x=x.astype(float))
        told += any(guess.options for guess in own_files.read(tmp_path / "a.npz").guesses)
    assert told <= 1


@pytest.mark.parametrize("cells", [["<142.38"], ["<0.5", ">90"], ["hemolysed"] * 3, ["12-14"],
                                   [f"<{i}.5" for i in range(9)], ["1.2.3"], ["3,7"]])  # fmt: skip
@pytest.mark.parametrize("sign", [",", ";"])
def test_a_few_cells_that_are_no_numbers_do_not_cost_their_column(tmp_path, cells, sign):
    path = export(tmp_path / "a.csv", x := values(rows=200), sign)
    frame = pandas.read_csv(path, sep=sign).astype(object)
    rows = np.random.default_rng(1).choice(200, len(cells), replace=False)
    frame.iloc[rows, 1] = cells
    frame.to_csv(path, index=False, sep=sign)
    told = refused(lambda: own_files.read(path), TableError, column="dose", row=min(rows))
    (advice,) = told.advice
    assert {*advice.options["na"]} == {*cells} and "without" not in advice.options
    table = own_files.read(path, **advice.options)
    np.testing.assert_array_equal(table.x, np.delete(x, rows, axis=0))
    said = call("run", "ssi", path, "-r", 1).stderr
    assert f"line {min(rows) + 2}" in said and "'dose'" in said
    (way,) = re.findall(r"\((--[^()]*)\)", said)
    assert call("run", "ssi", path, "-r", 1, *shlex.split(way)).exit_code == 0


SPELT = [str.upper, str.title, lambda name: f" {name}  ", lambda name: name.replace(" ", ""),
         lambda name: name.replace(" ", "  "), lambda name: name.replace(" ", "\u00a0"),
         ]  # fmt: skip


@pytest.mark.parametrize("spell", SPELT)
@pytest.mark.parametrize("kind", ["csv", "parquet", "npz"])
@pytest.mark.parametrize("at", [0, 1])
def test_names_that_differ_by_case_or_blanks_are_one(tmp_path, spell, kind, at):
    names, x = ["blood pressure", "age", "BMI"], [values(0), values(1)]
    spelt = [spell(names[0]), *names[1:]]
    frames = [pandas.DataFrame(x[i], columns=spelt if i == at else names) for i in range(2)]
    if kind != "npz":
        frames[1] = frames[1].iloc[:, ::-1]
    paths = written(tmp_path, frames, kind)
    first, second = own_files.together(paths)
    assert first.names == second.names
    for table, part in zip((first, second), x, strict=True):
        np.testing.assert_array_equal(table.x, part)
    told = [guess for guess in second.guesses if "blood" in guess.what.casefold()]
    assert len(told) == (first.names[0] != (spell(names[0]) if at else names[0])
                         and (kind != "csv" or spell(names[0]).strip() != names[0]))  # fmt: skip
    assert own_files.together(paths, without=[first.names[0]])[1].names == names[1:]
    for table, part in zip(own_files.together(paths, columns=first.names), x, strict=True):
        np.testing.assert_array_equal(table.x, part)


@pytest.mark.parametrize("option", ["columns", "apart"])
@pytest.mark.parametrize("names", [["a", "A"], ["A", "a"], ["my a", "My  A"]])
def test_a_column_that_is_asked_for_is_read_however_a_file_spells_it(tmp_path, option, names):
    x, paths = [values(0), values(1)], []
    for i, (part, name) in enumerate(zip(x, names, strict=True)):
        paths.append(export(tmp_path / f"{i}.csv", part, ";", ",", names=[name, "b", "c"]))
    for table, part in zip(own_files.together(paths, **{option: [names[0]]}), x, strict=True):
        found = table.x[:, 0] if option == "columns" else table.apart[names[0]].astype(float)
        np.testing.assert_array_equal(found, part[:, 0])


def test_names_of_one_file_that_differ_by_case_stay_two(tmp_path):
    frames = [pandas.DataFrame(values(i), columns=["a", "A", "b"]) for i in range(2)]
    for table in own_files.together(written(tmp_path, frames, "csv")):
        assert table.names == ["a", "A", "b"]


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("below", [True, False])
def test_a_separator_at_the_end_of_lines_makes_no_column(tmp_path, sign, named, below):
    path = export(tmp_path / "a.csv", x := values(), sign)
    with open(path, encoding="utf-8") as file:
        first, *rest = file.read().splitlines()
    lines = [first + sign * named, *[line + sign * below for line in rest]]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    table = own_files.read(path)
    assert table.names == NAMES
    np.testing.assert_array_equal(table.x, x)


@pytest.mark.parametrize("form", ["{:.2f} {:.2f}", "{:10.2f}{:10.2f} ", "{:.0f} 2{:03.0f}"])
@pytest.mark.parametrize("named", [True, False])
def test_blanks_separate_no_columns_and_are_asked_about(tmp_path, form, named):
    rows = [form.format(*row[:2]) for row in abs(values())]
    (path := tmp_path / "a.txt").write_text("\n".join(["age dose"] * named + rows) + "\n")
    refused(lambda: own_files.read(path), TableError, row=1)


@pytest.mark.parametrize("point", [".", ","])
def test_the_minus_of_typographers_is_one(tmp_path, point):
    x = -values()
    cells = np.vectorize(lambda v: text(v, point, "").replace("-", "\u2212"))(x)
    path = tmp_path / "a.csv"
    pandas.DataFrame(cells, columns=NAMES).to_csv(path, index=False, sep=";")
    np.testing.assert_array_equal(own_files.read(path).x, x)


def test_of_a_column_of_decimal_commas_without_a_name_is_asked_and_both_answers_lead_on(tmp_path):
    (path := tmp_path / "a.csv").write_text("1,5\n2,5\n3,7\n")
    told = refused(lambda: own_files.read(path), TableError)
    found = [own_files.read(path, header=False, **way.options).x for way in told.advice]
    np.testing.assert_array_equal(found[0], [[1, 5], [2, 5], [3, 7]])
    np.testing.assert_array_equal(found[1], [[1.5], [2.5], [3.7]])
    path.write_text("x\n1,5\n2,5\n3,7\n")
    np.testing.assert_array_equal(own_files.read(path).x, found[1])


@pytest.mark.parametrize("sign", [",", "\t", ";"])
@pytest.mark.parametrize("rows", [range(1, 41), [f"patient {i}" for i in range(40)]])
def test_row_names_of_r_are_refused_unless_they_have_a_name(tmp_path, sign, rows):
    """As write.table writes them: the names of the columns have one cell less than the rows."""
    x, names = values(), sign.join(f'"{name}"' for name in NAMES)
    lines = [sign.join([f'"{name}"', *map(str, row)]) for name, row in zip(rows, x, strict=True)]
    (path := tmp_path / "a.txt").write_text("\n".join([names, *lines]) + "\n")
    refused(lambda: own_files.read(path), TableError, "write.csv", row=2)
    path.write_text("\n".join([f'""{sign}{names}', *lines]) + "\n")
    table = own_files.read(path)
    assert table.names == NAMES
    np.testing.assert_array_equal(table.x, x)


def test_files_joined_with_their_names_keep_them_if_these_mean_missing(tmp_path):
    frame = pandas.DataFrame(values(), columns=NAMES)
    (path := tmp_path / "a.csv").write_text(frame.to_csv(index=False) * 2)
    told = refused(lambda: own_files.read(path), TableError)
    table = own_files.read(path, **told.advice[0].options)
    assert table.names == NAMES and len(table.x) == 80

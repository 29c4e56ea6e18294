import hashlib
import math
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedcore.errors import DataError, InputError
from fedcore.files import checksums
from fedcore.reports import tables
from refused import refused

values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
words = st.sampled_from(["true", "nan", "-inf", "1e-6", "007", " x", '"', 'a"b', "a\tb", "x\r\n"])
names = st.text("abc_µ1 ", min_size=1, max_size=6).filter(lambda name: name == name.strip())


@st.composite
def any_table(draw):
    columns = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    row = st.fixed_dictionaries({name: values | words for name in columns})
    return draw(st.lists(row, max_size=5))


def comparable(rows):
    """Types, and NaN and −0.0, made visible to ==; columns come in the order of the first row."""
    columns = list(rows[0]) if rows else []
    return [[(name, type(row[name]), repr(row[name])) for name in columns] for row in rows]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(any_table())
def test_read_returns_what_was_written_types_included(tmp_path, rows):
    path = tmp_path / "table.tsv"
    tables.write(rows, path)
    first = path.read_bytes(), path.with_suffix(".md").read_bytes()
    assert comparable(tables.read(path)) == comparable(rows)
    tables.write(tables.read(path), path)
    assert (path.read_bytes(), path.with_suffix(".md").read_bytes()) == first


def test_numpy_scalars_become_plain_values(tmp_path):
    row = {"a": np.float64(0.1), "b": np.int64(3), "c": np.bool_(True), "d": np.str_("x")}
    tables.write([row], tmp_path / "t.tsv")
    assert tables.read(tmp_path / "t.tsv") == [{"a": 0.1, "b": 3, "c": True, "d": "x"}]


@pytest.mark.parametrize(
    "value, text",
    [
        (0.0, "0"), (-0.0, "0"), (5000.0, "5000"), (12345.6, "12350"), (99999.9, "1e5"),
        (0.0012346, "0.001235"), (0.00012344, "1.234e-4"), (-1.94e-6, "-1.94e-6"),
        (1e20, "1e20"), (math.inf, "∞"), (-math.inf, "-∞"), (7, "7"), (None, ""), ("x", "x"),
    ],
)  # fmt: skip
def test_numbers_are_shown_to_four_digits(value, text):
    assert tables.show(value) == text


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"a\tb\n1\n", "line 2"),
        (b"a\tb\n1\t2\n3\t4\t5\n", "line 3"),
        (b"a\tb\n1\t2", "cut off"),
        (b"", "cut off"),
        (b"a\ta\n1\t2\n", "line 1"),
        (b'a\n"x\n', "line 2"),
        (b"a\n\xff\n", "t.tsv"),
        (None, "t.tsv"),
    ],
)
def test_a_damaged_or_missing_file_is_refused(tmp_path, content, name):
    if content is not None:
        (tmp_path / "t.tsv").write_bytes(content)
    refused(lambda: tables.read(tmp_path / "t.tsv"), DataError, name)


@pytest.mark.parametrize(
    ("rows", "file", "name"),
    [
        ([{"a": 1}, {"b": 1}], "t.tsv", "row 2: column 'a'"),
        ([{"a": 1}, {"a": 1, "b": 1}], "t.tsv", "row 2: column 'b'"),
        ([{"a": [1]}], "t.tsv", "column 'a'"),
        ([{"a": np.ones(1)}], "t.tsv", "column 'a'"),
        ([{"a\tb": 1}], "t.tsv", "column"),
        ([{"": 1}], "t.tsv", "column"),
        ([{}], "t.tsv", "columns"),
        ([{"a": 1}], "t.csv", ".tsv"),
    ],
)
def test_what_is_no_table_is_refused_and_leaves_no_file(tmp_path, rows, file, name):
    refused(lambda: tables.write(rows, tmp_path / file), InputError, name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[x](javascript:alert(1))", "[x]\\(javascript:alert(1))"),
        ("![x](http://a/b.png)", "![x]\\(http://a/b.png)"),
        ("[x][y]", "[x]\\[y]"),
        ("<javascript:alert(1)>", "&lt;javascript:alert(1)>"),
        ("<img src=x onerror=y>", "&lt;img src=x onerror=y>"),
        ("[0.1, 0.2] (of 3)", "[0.1, 0.2] (of 3)"),
    ],
)
def test_markdown_makes_no_links_of_text(text, shown):
    assert tables.markdown([{"a": text}]).splitlines()[-1] == f"| {shown} |"
    assert tables.markdown([], caption=text).startswith(f"{shown}\n")


def test_a_link_has_its_target_and_a_text_that_makes_none():
    rows = [{"paper": tables.Link("a [b](c)", "d/e.md"), "items": 1}]
    (link,) = re.findall(r"\| (\[.*\]\(d/e\.md\)) \| 1 \|", tables.markdown(rows))
    assert link == f"[{tables.escaped('a [b](c)')}](d/e.md)"


def test_a_damaged_table_is_noticed_wherever_the_damage_is(tmp_path):
    """Every byte: also a digit for a digit, and a file cut off at the end of a line."""
    path = tmp_path / "t.tsv"
    tables.write([{"a": 12, "b": "x"}, {"a": 13, "b": "y"}], path)
    whole = path.read_bytes()
    damages = [whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :] for i in range(len(whole))]
    damages += [whole[:i] for i in range(len(whole))]
    for damage in damages:
        path.write_bytes(damage)
        refused(lambda: tables.read(path), DataError, "t.tsv")
    path.write_bytes(whole)
    assert tables.read(path)[1] == {"a": 13, "b": "y"}


def test_a_damaged_checksum_is_noticed_and_a_table_without_one_is_read(tmp_path):
    path = tmp_path / "t.tsv"
    tables.write([{"a": 1}], path)
    known = checksums.place(path)
    assert known.read_text() == f"{hashlib.sha256(path.read_bytes()).hexdigest()}  t.tsv\n"
    known.write_bytes(b"\xff")
    refused(lambda: tables.read(path), DataError, "t.tsv")
    known.unlink()
    assert tables.read(path) == [{"a": 1}]

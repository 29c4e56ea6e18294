"""No control character reaches the terminal, wherever it comes from."""

from __future__ import annotations

import json
import unicodedata

import numpy as np
import pytest
from click.testing import CliRunner

from fedcore import History
from fedcore.__main__ import main

# NUL ends names of files, and a new line is what text has; \t, \n may be printed.
CONTROLS = [chr(code) for code in (*range(1, 32), *range(127, 160)) if chr(code) not in "\t\n"]
OTHERS = ["\u202e", "\u2066", "\u200f", "\u2028", "\ufeff"]
TITLE = "\x1b]0;owned\x07\x1b[2J"


def printed(*words):
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    for text in (result.stdout, result.stderr):
        unseen = [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Cs")]
        assert set(unseen) <= {"\n", "\t"}, (words, text)
    return result


@pytest.fixture
def run(tmp_path):
    """Return a function that writes a table with these names, and runs a method on it."""

    def call(name, file="table.csv"):
        path = tmp_path / file
        rows = np.random.default_rng(0).standard_normal((9, 3)).tolist()
        lines = [f'"{name}",b,c', *(",".join(map(str, row)) for row in rows)]
        path.write_text("\n".join(lines), encoding="utf-8", newline="")
        out = tmp_path / "run.h5"
        words = ["run", "one_shot", path, path.with_name("b.csv"), "-r", 1, "--out", out]
        path.with_name("b.csv").write_text("d,b,c\n1,2,3\n2,3,1\n3,1,7\n")
        printed(*words)  # the names differ, which is said
        return printed(*words[:3], *words[4:]), out

    return call


# Several at once: each is looked for in all that is printed.
TOGETHER = ["".join((*CONTROLS, *OTHERS)[i::6]) for i in range(6)]


@pytest.mark.parametrize("control", [*TOGETHER, TITLE], ids=ascii)
def test_names_of_columns_files_options_and_texts_of_histories_are_shown(control, run, tmp_path):
    run(f"a{control}b")
    file = f"c{control}d.csv"
    done, out = run("a", file)
    assert done.exit_code == 0, done.output
    for words in (
        ["run", "one_shot", tmp_path / f"no{control}.csv", "-r", 1],
        ["run", f"one{control}shot", tmp_path / file, "-r", 1],
        ["run", "one_shot", tmp_path / file, f"--{control}x"],
        ["run", "one_shot", tmp_path / file, "-r", 1, "--set", f"rounds{control}=1"],
        ["run", "one_shot", tmp_path / file, "-r", f"1{control}"],
        [f"ru{control}n"], [f"--ru{control}n"],
        ["compare", "one_shot", f"x{control}", "-r", 1],
        ["list", "methods", f"s{control}"], ["show", tmp_path / f"no{control}.h5"],
        ["plot", out, "--out", tmp_path / f"drawn{control}"],
    ):  # fmt: skip
        printed(*words)
    history = History.load(out)
    history.about["problem"]["name"] = history.about["algorithm"] = f"x{control}y"
    history.about["problem"]["note"] = f"x{control}y"
    history.save(out)
    shown = printed("show", out)
    assert shown.exit_code == 0
    told = printed("show", out, "--json")
    assert json.loads(told.stdout)["problem"]["note"] == f"x{control}y"

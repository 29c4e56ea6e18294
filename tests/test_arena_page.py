"""The arena's page is what the kept tables of the arena say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fedcore.__main__ import main
from fedcore.cli import options
from fedcore.files.strict_yaml import read_yaml
from fedcore.reports import tables
from fedcore.repro.site import curves

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def script(tool):
    return tool("arena_page")


def test_each_method_that_a_page_names_has_a_command_that_runs(script, tmp_path, monkeypatch):
    rng = np.random.default_rng(2)
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "c"):
        np.savez(f"{name}.npz", x=rng.standard_normal((60, 8)) / 9)
    page = script.PAGE.read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| (\S+) \| `(fedcore run [^`]+)` \|$", page, re.M))
    kept = {row["method"] for name in ("results", "ranks", "leaks")
            for row in tables.read(script.KEPT / f"{name}.tsv")}  # fmt: skip
    contest = read_yaml(ROOT / "papers/arena/experiments.yaml")["experiments"]["contest"]
    assert kept <= told.keys() == {name for run in contest["runs"] for name in run["variants"]}
    for name, command in told.items():
        words = shlex.split(command)
        assert words[3] == curves.DATA
        words[3:4] = ["a.npz", "b.npz", "c.npz"]
        done = CliRunner().invoke(main, words[1:])
        assert done.exit_code == 0, (name, done.output)


def test_a_command_is_read_as_it_was_written():
    params = {"n_components": 3, "tol": 1e-8, "clip": True, "model": "a b", "sizes": [1, 2]}
    words = shlex.split(curves.command("ssi", params))
    given = [word for word, before in zip(words[1:], words, strict=False) if before == "--set"]
    assert options.parameters(given)[""] == {k: v for k, v in params.items() if k != "n_components"}
    assert words[:4] == ["fedcore", "run", "ssi", "DATA"] and words[4:6] == ["--components", "3"]

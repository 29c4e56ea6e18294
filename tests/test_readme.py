"""What README tells a reader to type does what it says."""

from __future__ import annotations

import re
import shlex
import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fedcore import verdicts
from fedcore.cli import main
from fedcore.history import History

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def commands(program: str) -> list[list[str]]:
    """Return the arguments of every line of a console block that calls `program`."""
    lines = [line for block in blocks("console") for line in block.splitlines()]
    typed = [shlex.split(line.removeprefix("$ "), comments=True) for line in lines]
    return [words[1:] for words in typed if words and words[0] == program]


@pytest.mark.parametrize("code", blocks("python"))
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_the_python_examples_work_on_data_of_ones_own(code, offset, matrix_with):
    S = offset + matrix_with(300, 25, 0.7 ** np.arange(25), seed=8)
    scope = {"clients": np.array_split(S, 6)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(code, scope)
    centred = S - S.mean(axis=0)
    sigma, right_t = np.linalg.svd(centred, full_matrices=False)[1:]
    np.testing.assert_allclose(scope["model"].singular_values_, sigma[:10], rtol=1e-6)
    result = scope["result"]
    floor = 0.5 * np.sum(sigma[10:] ** 2)
    np.testing.assert_allclose(result.history["objective"][-1], floor, rtol=1e-6)
    shared = result.components @ right_t[:10].T
    np.testing.assert_allclose(np.linalg.svd(shared)[1], 1, atol=1e-10)


def test_the_commands_work_in_the_order_in_which_they_stand(tmp_path, monkeypatch):
    """On the stand-in of the data set; the verdicts are those of a quick run."""
    monkeypatch.chdir(tmp_path)
    one = verdicts.Verdict(
        "faps", "table1", "iterations", "Table 1", "table", "207", "", None, None, 0,
        "surrogate data", "the quick run takes stand-ins",
    )  # fmt: skip
    verdicts.write([one], tmp_path / "results" / "quick" / "verdicts.tsv")
    typed = commands("fedcore")
    assert {words[0] for words in typed} == {"algorithms", "run", "show", "verdicts"}
    for words in typed:
        stand_in = ["--surrogate"] if words[0] == "run" else []
        done = CliRunner().invoke(main, [*words, *stand_in])
        assert done.exit_code == 0, (words, done.output)
    history = History.load("run.h5")
    assert history.final["converged"].all()
    sigma, rank = history.reference["singular_values"], history.about["params"]["n_components"]
    floor = 0.5 * np.sum(sigma[rank:] ** 2)
    np.testing.assert_allclose(history.last("objective"), floor, rtol=1e-9)


def test_the_make_targets_exist():
    makefile = (Path(__file__).parents[1] / "Makefile").read_text(encoding="utf-8")
    for words in commands("make"):
        assert re.search(rf"^{words[0]}:", makefile, re.MULTILINE), words

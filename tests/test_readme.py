"""What README tells a reader to type does what it says."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fedcore.__main__ import main
from fedcore.history import History
from fedcore.repro.verdicts import verdict_pages
from printed import blocks, session

README = Path(__file__).parents[1] / "README.md"
HOSPITALS = README.parent / "examples/three_hospitals/synthetic_hospitals.py"
LIMITS = ("OMP_NUM_THREADS", "OMP_THREAD_LIMIT")


def commands(program: str) -> list[list[str]]:
    """Return the arguments of every line of a console block that calls `program`."""
    console = [block for block in blocks(README) if block.language == "console"]
    typed = [words for block in console for words, _ in session(block)]
    return [words[1:] for words in typed if words[0] == program]


@pytest.mark.parametrize("code", [b.code for b in blocks(README) if b.language == "python"])
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
    """On the stand-in of the data set, and without verdicts on any item.

    All but the last work without `make quickstart`, which makes the folder of the results.
    """
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(HOSPITALS), run_name="__main__")
    typed = commands("fedcore")
    assert {words[0] for words in typed} == {
        "list", "run", "show", "compare", "doctor", "pca", "verdicts",
    }  # fmt: skip
    for words in typed:
        stand_in = ["--surrogate"] if words[0] == "run" else []
        if words[0] == "verdicts":
            assert words == typed[-1] and not Path("results").exists()
            verdict_pages.write([], tmp_path / "results" / "quick" / "verdicts.tsv")
        done = CliRunner().invoke(main, [*words, *stand_in])
        assert done.exit_code == 0, (words, done.output)
    history = History.load("run.h5")
    assert history.final["converged"].all()
    sigma, rank = history.reference["singular_values"], history.about["params"]["n_components"]
    floor = 0.5 * np.sum(sigma[rank:] ** 2)
    np.testing.assert_allclose(history.last("objective"), floor, rtol=1e-9)


@pytest.mark.skipif(not shutil.which("make") or not shutil.which("nproc"), reason="needs both")
def test_cores_are_counted_whatever_openmp_is_told():
    def cores(**told):
        plain = {k: v for k, v in os.environ.items() if k not in ("CORES", *LIMITS)}
        done = subprocess.run(
            ["make", "-s", "help"], cwd=Path(__file__).parents[1],
            capture_output=True, text=True, env=plain | told, check=True,
        )  # fmt: skip
        return int(re.search(r"CORES=(\d+)", done.stdout)[1])

    assert cores() == cores(OMP_NUM_THREADS="1") == cores(OMP_NUM_THREADS="77")
    assert cores() == cores(OMP_THREAD_LIMIT="1")

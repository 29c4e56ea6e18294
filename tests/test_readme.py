"""What README tells a reader to type does what it says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import warnings
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from printed import blocks, session

from fedcore.cli import main
from fedcore.history import History
from fedcore.reports import verdict_pages

README = Path(__file__).parents[1] / "README.md"
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
    typed = commands("fedcore")
    assert {words[0] for words in typed} == {
        "algorithms", "run", "show", "compare", "doctor", "verdicts",
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


def test_the_make_targets_exist():
    makefile = (Path(__file__).parents[1] / "Makefile").read_text(encoding="utf-8")
    for words in commands("make"):
        assert re.search(rf"^{words[0]}:", makefile, re.MULTILINE), words


def test_the_commands_leave_nothing_that_git_would_ask_about():
    ignored = (Path(__file__).parents[1] / ".gitignore").read_text(encoding="utf-8").split()
    endings = {"--out": ["{}"], "--plot": ["{}.png", "{}.pdf", ".{}.png.sha256"]}
    made = [
        ending.format(words[words.index(option) + 1])
        for words in commands("fedcore")
        for option in endings.keys() & set(words)
        for ending in endings[option]
    ]
    assert len(made) == 4
    for file in made:
        assert any(fnmatch(f"/{file}", pattern) for pattern in ignored), file


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
@pytest.mark.parametrize("name", [".venv", ".venv-docs"])
def test_an_environment_that_is_a_link_is_not_committed(tmp_path, name):
    """`git add -A` once took such a link, and a merge then replaced the environment it named."""
    shutil.copy(Path(__file__).parents[1] / ".gitignore", tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True)
    asked = ["git", "check-ignore", name]
    assert subprocess.run(asked, cwd=tmp_path, capture_output=True).returncode == 0


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
def test_make_does_not_change_an_environment_behind_a_link(tmp_path):
    others = tmp_path / "others" / "bin"
    others.mkdir(parents=True)
    (others / "python").touch()
    (tmp_path / "env").symlink_to(others.parent)
    done = subprocess.run(
        ["make", "-s", "env", f"VENV={tmp_path / 'env'}"], cwd=Path(__file__).parents[1],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode != 0 and "is a link" in done.stderr
    assert [path.name for path in others.iterdir()] == ["python"]


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


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
def test_a_folder_that_is_no_environment_stays_and_nobody_is_told_to_remove_it(tmp_path):
    (tmp_path / "mine").write_text("kept")
    done = subprocess.run(
        ["make", "-s", "env", f"VENV={tmp_path}"], cwd=Path(__file__).parents[1],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode and "choose another folder with VENV=" in done.stderr
    assert "remove" not in done.stderr and (tmp_path / "mine").read_text() == "kept"


def prose(page: Path) -> list[str]:
    """Return the lines of a page that can be broken: no code, no tables."""
    lines, code = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.lstrip().startswith("```"):
            code = not code
        elif not code and not line.startswith(("|", "    ")):
            lines.append(line)
    return lines


def test_lines_of_prose_fit_a_narrow_window():
    root = Path(__file__).parents[1]
    pages = [p for p in [*root.glob("*.md"), *root.glob("*/*.md")] if p.parent.name != "results"]
    assert len(pages) >= 6
    long = [f"{p.relative_to(root)}: {line}" for p in pages for line in prose(p) if len(line) > 100]
    assert long == []

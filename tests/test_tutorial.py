"""docs/tutorial.md, its console blocks in order, from a built wheel and outside the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from matplotlib import image
from printed import ROOT, blocks, require_output, session

PAGE = ROOT / "docs" / "tutorial.md"
SCRIPTS = ROOT / "docs" / "three_hospitals"
CONSOLE = [block for block in blocks(PAGE) if block.language == "console"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Return the wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def followed(wheel, tmp_path_factory):
    """Follow the page in an empty folder; return the folder, the seconds and what was printed."""
    installed, folder = (tmp_path_factory.mktemp(name) for name in ("installed", "hospitals"))
    zipfile.ZipFile(wheel).extractall(installed)  # what pip does with a wheel of pure Python
    for script in SCRIPTS.glob("*.py"):
        shutil.copy(script, folder)
    environment = os.environ | {"PYTHONPATH": str(installed)}
    programs = {"python": [sys.executable], "fedcore": [sys.executable, "-m", "fedcore"]}
    began, said = time.monotonic(), []
    for block in CONSOLE:
        if block.dry:
            continue
        for words, printed in session(block):
            done = subprocess.run(
                [*programs[words[0]], *words[1:]], cwd=folder, env=environment,
                capture_output=True, text=True, encoding="utf-8",
            )  # fmt: skip
            assert done.returncode == 0, (words, done.stderr)
            require_output(block, words, printed, done.stdout)
            said.append(done.stdout)
    where = subprocess.run(
        [sys.executable, "-c", "import fedcore; print(fedcore.__file__)"],
        cwd=folder, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert Path(where.stdout.strip()).is_relative_to(installed)
    return folder, time.monotonic() - began, said


def test_it_takes_at_most_eight_commands_and_ten_minutes(followed):
    typed = [words for block in CONSOLE for words, _ in session(block)]
    assert len(typed) <= 8
    numbers = "zero one two three four five six seven eight".split()
    assert f"{numbers[len(typed)]} commands" in PAGE.read_text(encoding="utf-8")
    assert followed[1] < 300  # the rest of ten minutes is for pip


def test_what_it_finds_is_what_the_pooled_table_gives(followed):
    folder, _, said = followed
    tables = [
        np.loadtxt(folder / f"{name}.csv", delimiter=",", skiprows=1)
        for name in ("north", "south", "west")
    ]
    low = np.array([18, 80, 14, 2.6, 2.2, 30])
    high = np.array([92, 180, 38, 8.6, 8.2, 130])
    S = (2 * np.vstack(tables) - low - high) / (high - low)
    right_t = np.linalg.svd(S - S.mean(axis=0), full_matrices=False)[2][:2]
    right_t *= np.sign(right_t[np.arange(2), np.abs(right_t).argmax(axis=1)])[:, None]

    def weights(text):
        lines = [line.split() for line in text.splitlines() if line.startswith("  ")]
        return np.array([[float(number) for number in line[1:]] for line in lines])

    np.testing.assert_allclose(weights(said[2]), right_t.T, atol=0.0051)
    private = np.linalg.qr(weights(said[3]))[0]
    # 1 is the same plane; the least of 200 private fits was 0.992.
    assert np.linalg.svd(private.T @ right_t.T, compute_uv=False).min() > 0.95


def test_it_ends_with_plots_of_both(followed):
    folder = followed[0]
    pictures = [image.imread(folder / f"{name}.png") for name in ("scores", "scores-private")]
    assert all(picture.std() > 0.05 for picture in pictures)
    assert not np.array_equal(*pictures)
    assert (folder / "pca.h5").is_file()


def test_the_data_are_named_synthetic_and_repeat(followed, tmp_path):
    first = followed[2][0]
    assert first.count("synthetic patients") == 3
    subprocess.run([sys.executable, SCRIPTS / "synthetic_hospitals.py"], cwd=tmp_path, check=True)
    for name in ("north", "south", "west"):
        again = (tmp_path / f"{name}.csv").read_bytes()
        assert again == (followed[0] / f"{name}.csv").read_bytes() and len(again) < 150_000


def script(folder, *arguments):
    return subprocess.run(
        [sys.executable, str(SCRIPTS / "hospital_pca.py"), *arguments],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, encoding="utf-8",
    )  # fmt: skip


@pytest.fixture
def own(tmp_path):
    """Two files with columns that the script does not know, in another order in the second."""
    rng = np.random.default_rng(4)
    S = rng.standard_normal((90, 4)) @ rng.standard_normal((4, 4)) * [1.0, 10.0, 0.1, 3.0]
    names, other = ["a", "b", "c", "d"], [2, 0, 3, 1]
    head = ",".join(f'"{name}"' for name in names)
    np.savetxt(tmp_path / "x.csv", S[:60], delimiter=",", header=head, comments="")
    head = ",".join(names[i] for i in other)
    np.savetxt(tmp_path / "y.csv", S[60:][:, other], delimiter=",", header=head, comments="")
    return tmp_path, S


def test_files_with_columns_of_ones_own_need_no_edit(own):
    folder, S = own
    done = script(folder, "x.csv", "y.csv")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("  ")]
    assert [line[0] for line in lines] == ["a", "b", "c", "d"]
    found = np.array([[float(number) for number in line[1:]] for line in lines])
    right_t = np.linalg.svd((S - S.mean(axis=0)) / S.std(axis=0), full_matrices=False)[2][:2]
    right_t *= np.sign(right_t[np.arange(2), np.abs(right_t).argmax(axis=1)])[:, None]
    np.testing.assert_allclose(found, right_t.T, atol=0.0051)
    assert image.imread(folder / "scores.png").std() > 0


def test_a_mark_before_utf_8_and_empty_lines_change_nothing(own):
    folder, _ = own
    plain = script(folder, "x.csv", "y.csv")
    for name in ("x.csv", "y.csv"):
        text = (folder / name).read_text(encoding="utf-8")
        (folder / name).write_text(f"{text}\n\n", encoding="utf-8-sig")
    marked = script(folder, "x.csv", "y.csv")
    assert plain.returncode == marked.returncode == 0, marked.stderr
    assert marked.stdout == plain.stdout


def test_no_patient_is_lost_without_a_line_of_names_or_behind_quotes(own):
    folder, S = own
    np.savetxt(folder / "bare.csv", S, delimiter=";")
    (folder / "quoted.csv").write_text(
        '"a, first",b,ward\n' + "".join(f'"{a}",{b},n\n' for a, b in S[:, :2]), encoding="utf-8"
    )
    bare = script(folder, "bare.csv")
    assert bare.returncode == 0 and "  0   " in bare.stdout, bare.stderr
    pooled = script(folder, "x.csv", "y.csv")
    numbers = [line.split()[1:] for line in bare.stdout.splitlines() if line.startswith("  ")]
    assert numbers == [
        line.split()[1:] for line in pooled.stdout.splitlines() if line.startswith("  ")
    ]
    done = script(folder, "quoted.csv", "--without", "ward")
    assert done.returncode == 0 and "  a, first  " in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["x.csv", "y.csv", "--epsilon", "1"], "write the possible ranges of a, b, c, d into"),
        (["x.csv", "words.csv"], "words.csv, line 2): leave it out (--without c)"),
        (["x.csv", "less.csv"], "not in less.csv): leave it out (--without d)"),
        (["x.csv", "gone.csv"], "there is no file gone.csv"),
        (["x.csv", "latin.csv"], "latin.csv is no text in UTF-8"),
        (["x.csv", "empty.csv"], "empty.csv has no numbers: leave it out"),
        (["x.csv", "head.csv"], "head.csv has no numbers: leave it out"),
        (["x.csv", "short.csv"], "short.csv, line 3: 3 cells, and the first line has 4"),
        (["x.csv", "long.csv"], "long.csv, line 2: 5 cells, and the first line has 4"),
        (["double.csv"], "'a' (2 columns of double.csv): leave it out (--without a)"),
        (["one.csv"], "n_components = 2 is larger than min(n_samples, n_features) = 1"),
        (["x.csv", "y.csv", "./x.csv"], "x.csv is given twice, and each file is one client"),
        (["x.csv", "y.csv", "--epsilon", "0"], "--epsilon 0: ε must be above 0"),
        (["x.csv", "y.csv", "--epsilon", "nan"], "--epsilon nan: ε must be above 0"),
    ],
)
def test_files_that_do_not_fit_are_refused_in_a_sentence(own, arguments, sentence):
    folder, _ = own
    (folder / "words.csv").write_text("a,b,c,d\n1,2,ill,4\n")
    (folder / "less.csv").write_text("a,b,c\n1,2,3\n")
    (folder / "latin.csv").write_bytes("größe,b,c,d\n1,2,3,4\n".encode("latin-1"))
    (folder / "empty.csv").write_text("")
    (folder / "head.csv").write_text("a,b,c,d\n\n")
    (folder / "short.csv").write_text("a,b,c,d\n1,2,3,4\n1,2,3\n")
    (folder / "long.csv").write_text("a,b,c,d\n1,2,3,4,5\n5,4,3,2,1\n")
    (folder / "double.csv").write_text("a,a,b\n1,2,3\n2,4,4\n")
    (folder / "one.csv").write_text("a\n1\n2\n")
    done = script(folder, *arguments)
    assert done.returncode == 2 and sentence in done.stderr and "Traceback" not in done.stderr

"""What benchmarks printed is kept as it was, and README of benchmarks shows it."""

from __future__ import annotations

import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

FOLDER = Path(__file__).parents[1] / "benchmarks"
DRAW = ("bench_mpi.py", "--kept benchmarks/kept/bench_mpi.txt", "--plot docs/mpi_scaling.png")


@pytest.fixture
def keep():
    spec = importlib.util.spec_from_file_location("keep", FOLDER / "keep.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_readme_shows_every_kept_output_as_it_is_and_says_where_it_was_measured(keep):
    text = keep.README.read_text(encoding="utf-8")
    assert keep.inserted(text) == text, "run `make bench-kept`, or python benchmarks/keep.py NAME"
    kept = {file.stem: file.read_text(encoding="utf-8") for file in keep.KEPT.glob("*.txt")}
    shown = set(re.findall(r"writes what follows: ([\w-]+) -->", text))
    assert kept.keys() == shown and len(shown) > 8
    for name, output in kept.items():
        script = f"{name.partition('-')[0]}.py"
        assert (FOLDER / script).is_file(), name
        first, when, machine = output.splitlines()[:3]
        assert first.split() == [script, *keep.OPTIONS.get(name, [])]
        assert re.fullmatch(r"\d{4}-\d\d-\d\d, commit [0-9a-f]{7,}(-dirty)?", when), name
        assert re.search(r", \d+ threads.*, load ", machine), name


def test_the_figure_of_ranks_shows_the_kept_numbers(tmp_path):
    """It was once older than they were, and what drew it had lost an import."""
    kept = FOLDER / "kept/bench_mpi.txt"
    drawn = tmp_path / "drawn.png"
    command = [sys.executable, FOLDER / "bench_mpi.py", "--kept", kept, "--plot", drawn]
    subprocess.run(command, check=True)
    docs = FOLDER.parent / "docs"
    here = docs / "mpi_scaling.png"
    said = kept.read_text(encoding="utf-8").splitlines()
    for file in (drawn, here):
        with Image.open(file) as picture:
            assert picture.info["Source"] == said[1], f"python benchmarks/{' '.join(DRAW)}"
    drawn, here = Image.open(drawn), Image.open(here)
    assert drawn.size == here.size
    if drawn.info["Software"] == here.info["Software"]:  # another version lays it out anew
        pixels = [np.asarray(picture.convert("L"), float) for picture in (drawn, here)]
        assert np.abs(pixels[0] - pixels[1]).mean() < 1.0  # on another machine letters may differ
    assert " ".join(DRAW) in (docs / "site/gallery.py").read_text(encoding="utf-8").replace(
        '"\n        "', ""
    )


def test_what_a_run_over_ranks_printed_is_read(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    module = importlib.import_module("bench_mpi")
    text = (FOLDER / "kept/bench_mpi.txt").read_text(encoding="utf-8")
    found = module.printed(text)
    assert list(found) == ["work", "messages"]
    for ways in found.values():
        assert list(ways) == [module.ALONE, 1, 2]
    rows = [line for line in text.splitlines() if "rank(s)" in line]
    read = [way for ways in found.values() for way in ways.values()]
    for row, seconds in zip(rows, read, strict=True):
        for what, value in seconds.items():
            assert f"{what} {1e3 * value:7.2f} [" in row


def test_an_edited_part_is_noticed(keep):
    text = keep.README.read_text(encoding="utf-8")
    begin, _ = keep.marks("bench_privacy")
    edited = text.replace(begin, f"{begin}\n\nours: 0.001 s\n", 1)
    assert edited != text and keep.inserted(edited) == text
    with pytest.raises(SystemExit, match="needs the lines"):
        keep.inserted(text.replace(begin, ""))


def test_what_a_benchmark_prints_is_kept_if_it_succeeds(keep, tmp_path, monkeypatch):
    monkeypatch.setattr(keep, "FOLDER", tmp_path)
    monkeypatch.setattr(keep, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(keep, "OPTIONS", {"bench_good": ["--size", "3"]})
    (tmp_path / "bench_good.py").write_text("import sys\nprint('took', sys.argv[1:])\n")
    (tmp_path / "bench_bad.py").write_text("print('wrong')\nraise SystemExit(1)\n")
    keep.keep("bench_good", "abc1234")
    kept = (tmp_path / "kept/bench_good.txt").read_text(encoding="utf-8")
    assert kept.startswith("bench_good.py --size 3\n") and ", commit abc1234\n" in kept
    assert kept.endswith("\n\ntook ['--size', '3']\n") and "numpy" in kept
    with pytest.raises(SystemExit, match="bench_bad ends with status 1: wrong"):
        keep.keep("bench_bad", "abc1234")
    assert not (tmp_path / "kept/bench_bad.txt").exists()

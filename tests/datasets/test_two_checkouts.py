"""Two checkouts that fetch one data set at once, into folders of their own or a shared one."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from fedcore import datasets

CHUNKS = 3  # of a file, as the copy reads it
SIZE = CHUNKS << 20
# Both processes have written a part of the first file when either goes on with it.
FETCH = """
import sys, time
from pathlib import Path
from fedcore import datasets
from fedcore.datasets import fetching

raw, registry, mark, other = sys.argv[1:]

class Halting:
    def __init__(self, file):
        self.file, self.parts = file, 0

    def read(self, size=-1):
        self.parts += 1
        if self.parts == 2:
            Path(mark).touch()
            until = time.monotonic() + 120
            while not Path(other).exists():
                assert time.monotonic() < until, "the other process did not come"
                time.sleep(0.01)
        return self.file.read(size)

real = fetching.save
fetching.save = lambda source, path, file: real(Halting(source), path, file)
datasets.fetch("toy", raw, registry=registry, progress=False)
assert Path(mark).exists(), "it has copied nothing"
"""


def stamps(folder):
    """Content and time of every file below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


@pytest.mark.parametrize("linked", [False, True])
def test_both_get_whole_files_and_the_mirror_stays(source, registry, place, tmp_path, linked):
    head = b"\0\0\x08\x03" + (SIZE // 4).to_bytes(4, "big") + b"\0\0\0\x02" * 2
    files = {
        "images": head + os.urandom(SIZE),
        "labels": b"\0\0\x08\x01" + (SIZE // 4).to_bytes(4, "big") + bytes(SIZE // 4),
    }
    mirror = place("mirror", files)
    splits = {"train": {"images": "images", "labels": "labels"}}
    described = registry(source("idx", splits, files), n_features=4)
    before = stamps(mirror)

    checkouts = [tmp_path / "one/data/raw", tmp_path / "two/data/raw"]
    checkouts[0].mkdir(parents=True)
    checkouts[1].parent.mkdir(parents=True)
    if linked:
        checkouts[1].symlink_to(checkouts[0], target_is_directory=True)
    marks = [tmp_path / "here 1", tmp_path / "here 2"]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", FETCH, *map(str, (raw, described, mark, other))],
            env=os.environ | {"FEDCORE_MIRROR": str(mirror)}, stderr=subprocess.PIPE, text=True,
        )
        for raw, mark, other in zip(checkouts, marks, marks[::-1], strict=True)
    ]  # fmt: skip
    said = [process.communicate(timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said

    for raw in checkouts:
        there = {path.name: content for path, (content, _) in stamps(raw / "toy").items()}
        sums = json.loads(there.pop("fetched.json"))
        assert there == files and sums.keys() == files.keys()
        assert datasets.load("toy", raw, registry=described).x.shape == (SIZE // 4, 4)
    assert stamps(mirror) == before

    kept = stamps(checkouts[0])
    datasets.fetch("toy", checkouts[1], mirror=mirror, registry=described, progress=False)
    assert stamps(checkouts[0]) == kept

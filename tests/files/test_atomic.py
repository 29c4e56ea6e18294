"""Writers of one output do not get into each other's way."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from fedcore.errors import HistoryError
from fedcore.files import atomic
from fedcore.history import History

WRITER = """
import sys
import numpy as np
from fedcore.history import History
columns = {"iteration": np.arange(50)[None], "objective": np.ones((1, 50))}
for _ in range(40):
    History(columns, {}, about={"paper": "p" * 5000}).save(sys.argv[1])
"""


def test_two_writers_with_one_process_id(tmp_path, monkeypatch):
    """As two containers that share a folder have it: both finish, and the later one stays."""
    monkeypatch.setattr(os, "getpid", lambda: 7)
    final = tmp_path / "table.tsv"
    with atomic.replace(final) as first:
        first.write_text("first")
        with atomic.replace(final) as second:
            assert second != first
            second.write_text("second")
        assert final.read_text() == "second"
        assert first.read_text() == "first"
    assert final.read_text() == "first"
    assert os.listdir(tmp_path) == ["table.tsv"]


def test_whoever_reads_sees_a_whole_file(tmp_path):
    path = tmp_path / "history.h5"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, path]) for _ in range(3)]
    reads, patience = 0, time.monotonic() + 300
    while any(writer.poll() is None for writer in writers) and time.monotonic() < patience:
        try:
            assert History.load(path).repeats == 1
            reads += 1
        except HistoryError as error:  # before the first is there
            assert "does not exist" in str(error) and reads == 0
            time.sleep(0.01)
    assert [writer.wait() for writer in writers] == [0, 0, 0] and reads > 0
    assert os.listdir(tmp_path) == ["history.h5"]


def test_the_temporary_name(tmp_path):
    """It is hidden, keeps the ending, and is found by the pattern of what is left over."""
    with atomic.replace(tmp_path / "a" / "table.tsv") as temporary:
        temporary.touch()
        assert temporary.parent == tmp_path / "a" and temporary.suffix == ".tsv"
        assert atomic.LEFT_OVER.fullmatch(temporary.name)
    assert not atomic.LEFT_OVER.fullmatch("table.tsv")

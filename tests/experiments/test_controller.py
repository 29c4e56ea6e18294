"""Runs that were killed are known by their locks, and their late jobs refuse."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fedcore.errors import SupersededError
from fedcore.experiments import controller

BEGIN = """
import sys
from pathlib import Path
from fedcore.experiments import controller
print(controller.name(), *controller.begin(Path("runs")), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def begun(tmp_path):
    """Begin runs in processes of their own; all are killed at the end."""
    processes = []

    def begin():
        process = subprocess.Popen(
            [sys.executable, "-c", BEGIN], cwd=tmp_path, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(Path(controller.__file__).parents[2])},
        )  # fmt: skip
        processes.append(process)
        name, *killed = process.stdout.readline().split()
        return process, name, killed

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.fault(
    "cluster",
    "a run killed while its jobs are queued",
    told="…, which was killed, and a later run …",
)
def test_the_jobs_of_a_killed_run_refuse_once_another_has_begun(begun, tmp_path, monkeypatch):
    first, name, killed = begun()
    assert killed == []
    monkeypatch.setenv(controller.RUN, str(tmp_path / "runs" / name))
    _, _, killed = begun()
    assert killed == []  # both are alive, as two runs may be that make other files
    controller.require_current()
    first.kill()
    first.wait()
    controller.require_current()  # a job that outlives its run may end
    _, _, killed = begun()
    assert killed == [name]
    with pytest.raises(SupersededError, match=f"{name}, which was killed, and a later run"):
        controller.require_current()
    _, _, killed = begun()
    assert killed == []  # told once


def test_a_run_that_has_not_locked_its_file_yet_is_not_taken_for_dead(begun, tmp_path):
    """Another one begins in the moment in which its file is there and not locked."""
    folder = tmp_path / "runs"
    folder.mkdir()
    held = os.open(folder, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    with open(folder / "fedcore-0", "ab") as file, ThreadPoolExecutor() as pool:
        second = pool.submit(begun)
        time.sleep(3)  # it waits for the folder
        assert not second.done()
        fcntl.flock(file, fcntl.LOCK_EX)
        os.close(held)
        assert second.result()[2] == []
    assert begun()[2] == ["fedcore-0"]


def test_a_job_without_a_run_is_not_refused(monkeypatch):
    monkeypatch.delenv(controller.RUN, raising=False)
    controller.require_current()


def test_a_run_that_ended_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv(controller.RUN, "")
    assert controller.begin(tmp_path) == []
    assert os.environ[controller.RUN] == str(tmp_path / controller.name())
    controller.end()
    assert not list(tmp_path.iterdir())


@pytest.mark.fault("disk", "a file system without locks")
@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK])
def test_without_locks_nobody_is_taken_for_dead(tmp_path, monkeypatch, number):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setenv(controller.RUN, "")
    monkeypatch.setattr(fcntl, "flock", refuse)
    (tmp_path / "fedcore-0").touch()
    assert controller.begin(tmp_path) == []
    controller.end()
    assert (tmp_path / "fedcore-0").exists()


def test_old_marks_are_removed(tmp_path, monkeypatch):
    monkeypatch.setenv(controller.RUN, "")
    for name in ("fedcore-0.over", "fedcore-1.over"):
        (tmp_path / name).touch()
    os.utime(tmp_path / "fedcore-0.over", (0, 0))
    controller.begin(tmp_path)
    controller.end()
    assert [path.name for path in tmp_path.iterdir()] == ["fedcore-1.over"]

"""A job has a process, a log and an end of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import threadpoolctl

from fedcore import algorithms
from fedcore.errors import InputError
from fedcore.experiments import forking
from fedcore.experiments.forking import JobError
from fedcore.files import hdf5
from fedcore.problems import storage
from fedcore.problems.problem import Problem
from fedcore.reports import tables


def writes(path, text="", *, wait=0.0):
    time.sleep(wait)
    np.ones(10) @ np.ones(10)
    libraries = [lib for lib in threadpoolctl.threadpool_info() if lib["user_api"] == "blas"]
    threads = {library["num_threads"] for library in libraries}
    Path(path).write_text(f"{os.getpid()} {os.getcwd()} {threads} {text}")


def dies(how):
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "refused":
        raise InputError("the rank is too large: choose a smaller one")
    raise RuntimeError("a fault of ours")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / ".snakemake").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_job_runs_elsewhere_in_the_same_folder_with_as_many_threads_as_its_rule_has(folder):
    for threads in (1, 2):
        forking.run(writes, "out", text="done", log="log", threads=threads)
        process, where, found, text = (folder / "out").read_text().split()
        assert int(process) != os.getpid() and where == str(folder)
        assert found == f"{{{threads}}}" and text == "done"
        assert (folder / "log").read_text().split(", ")[1].startswith(f"process {process} on ")


def test_it_leaves_what_it_took(folder):
    forking.run(writes, "out", log="log", benchmark="times/job.tsv", wait=0.2)
    (row,) = tables.read(folder / "times" / "job.tsv")
    assert 0.2 <= row["s"] < 60 and 0 <= row["cpu_time"] < row["s"] + 0.1
    assert 10 < row["max_rss"] < 2000


def test_jobs_of_several_threads_all_end_well(folder):
    """Without the lock one in thirty is said to have ended with status 255."""
    code = """
import os
from concurrent.futures import ThreadPoolExecutor
from fedcore.experiments import forking
with ThreadPoolExecutor(2) as pool:
    jobs = [pool.submit(forking.run, os.getpid, log=f"log{i}") for i in range(200)]
    print(len([job.result() for job in jobs]))
"""  # here and not in pytest, where jobs start too slowly to meet one another
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder)
    assert done.stdout == "200\n", done.stderr[-300:]


@pytest.mark.fault(
    "killed",
    "a forked job killed, refused or broken; the next one does not notice",
    told="the job ended with …",
)
@pytest.mark.parametrize(
    ("how", "ended", "said"),
    [
        ("killed", "signal 9", "job "),
        ("refused", "status 1", "Error: the rank is too large: choose a smaller one"),
        ("broken", "status 1", "RuntimeError: a fault of ours"),
    ],
)
def test_a_job_that_fails_is_an_error_that_names_its_log(folder, how, ended, said):
    why = "somebody or, where memory is short, the system" if how == "killed" else "log says why$"
    with pytest.raises(JobError, match=f"^the job ended with {ended}: {why}"):
        forking.run(dies, how, log="log", benchmark="job.tsv")
    assert said in (folder / "log").read_text()
    assert not (folder / "job.tsv").exists()
    forking.run(writes, "out", log="log")  # the next one does not notice


def cuts(path, *, used):
    clients = storage.load(path).clients
    if used:
        clients[0].sum()
    os.truncate(path, 512)
    clients[0].sum()


@pytest.mark.fault(
    "damaged",
    "the large file of a problem overwritten or cut off in place while it is read",
    told="… was overwritten in place while it was read: …",
)
@pytest.mark.parametrize("used", [True, False], ids=["while in use", "before it is read"])
def test_a_large_file_that_is_cut_off_in_place_is_named_as_the_reason(folder, monkeypatch, used):
    """Python cannot catch SIGBUS, by which the system ends who reads a map behind its file."""
    monkeypatch.setattr(hdf5, "LARGE", 1000)
    storage.save(Problem("own", [np.ones((300, 100))]), "large.h5")
    ended = f"signal {signal.SIGBUS:d}: a file that it had mapped" if used else "status 1: "
    said = "Bus error" if used else "Error: large.h5 was overwritten in place while it was read: "
    with pytest.raises(JobError, match=f"^the job ended with {ended}"):
        forking.run(cuts, "large.h5", used=used, log="log")
    assert said in (folder / "log").read_text()


@pytest.mark.parametrize("how", ["broken", "refused"])
def test_a_job_of_a_quiet_run_tells_its_log_alone(folder, capsys, how):
    with pytest.raises(SystemExit, match=r"^1$"):
        forking._quiet_job(str(folder), "log", None, 1, dies, (how,), {})
    assert capsys.readouterr().err == ""
    assert "Error: " in (folder / "log").read_text()
    with pytest.raises(FileNotFoundError):  # or nobody would hear of it
        forking._quiet_job(str(folder), "no/log", None, 1, dies, (how,), {})


def test_a_task_may_be_named_and_what_cannot_be_imported_fails_in_its_job_alone(folder):
    """One module of the two that are imported before the jobs raises an error."""
    (folder / "broken.py").write_text("raise RuntimeError('a fault in a module')\n")
    (folder / "whole.py").write_text(
        "import os\nMADE = os.getpid()\n"
        "def job(): open('out', 'w').write(f'{os.getpid() != MADE}')\n"
    )
    code = """
from fedcore.experiments import forking
forking.also_import(["broken", "whole"])
forking.run("whole:job", log="whole.log")
try:
    forking.run("broken:job", log="broken.log")
except forking.JobError as error:
    print(error)
"""
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
    )  # fmt: skip
    assert done.stdout == "the job ended with status 1: broken.log says why\n", done.stderr
    assert (folder / "out").read_text() == "True"  # imported in another process than the job's
    assert "a fault in a module" in (folder / "broken.log").read_text()


def test_jobs_find_methods_without_looking_for_them(folder):
    forking.run(finds, "out", log="log")
    assert (folder / "out").read_text() == "True True"


def finds(path):
    known = "_modules" in algorithms.REGISTRY.__dict__
    Path(path).write_text(f"{known} {'fedcore.algorithms.ssi' in sys.modules}")

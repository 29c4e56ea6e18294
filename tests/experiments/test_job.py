"""The log of a job that was ended names the cause and the place."""

from __future__ import annotations

import subprocess
import sys

import pytest

JOB = """
import os, signal, sys
from fedcore.files import atomic
from fedcore.experiments.job import logged

def inner():
    {harm}

with logged("job.log"), atomic.replace("output") as path:
    path.write_text("half")
    inner()
    path.write_text("whole")
"""

# Code with which a job ends itself, and what the last line of its log says.
ENDED = {
    "sys.exit": ("sys.exit(3)", 3, "SystemExit 3"),
    "sys.exit without a status": ("sys.exit()", 0, "SystemExit"),
    "Ctrl-C": ("os.kill(os.getpid(), signal.SIGINT)", -2, "KeyboardInterrupt"),
    "KeyboardInterrupt": ("raise KeyboardInterrupt", -2, "KeyboardInterrupt"),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM)", -2, "KeyboardInterrupt SIGTERM"),
    "SIGUSR1": ("os.kill(os.getpid(), signal.SIGUSR1)", -2, "KeyboardInterrupt SIGUSR1"),
    "GeneratorExit": ("raise GeneratorExit('odd')", 1, "GeneratorExit odd"),
}


@pytest.fixture
def job(tmp_path):
    """Run a job that ends itself; return its exit status and its log."""
    (tmp_path / ".snakemake").mkdir()

    def run(harm, *, before=""):
        # A suite started in the background ignores Ctrl-C, and so would the job that it starts.
        heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        code = heard + before + JOB.format(harm=harm)
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True)
        return done.returncode, (tmp_path / "job.log").read_text()

    return run


@pytest.mark.fault(
    "client",
    "a job that needs more memory than there is",
    told="the job is too large for this machine (…): make its problem smaller",
)
@pytest.mark.parametrize(
    "harm", ["import numpy; numpy.zeros(2**50)", "raise MemoryError", "range(2**70).__len__()"]
)
def test_a_job_that_is_too_large_ends_in_a_sentence(job, tmp_path, harm):
    returned, log = job(harm)
    assert returned == 1 and "Traceback" not in log
    assert log.splitlines()[-1].startswith("Error: the job is too large for this machine (")
    assert log.splitlines()[-1].endswith("): make its problem smaller")
    assert not (tmp_path / "output").exists()


def test_an_overflow_of_arithmetic_keeps_its_traceback(job):
    returned, log = job("import math; math.exp(1e4)")
    assert returned == 1 and "in inner" in log and "OverflowError: math range error" in log
    assert "too large" not in log


@pytest.mark.fault(
    "failed",
    "a job ended by sys.exit, Ctrl-C or a signal",
    told="the job was ended before it was done, by …",
)
@pytest.mark.parametrize("how", ENDED)
def test_a_job_that_is_ended(job, tmp_path, how):
    harm, status, words = ENDED[how]
    returned, log = job(harm)
    assert returned == status
    assert log.splitlines()[-1] == f"Error: the job was ended before it was done, by {words}"
    assert "in inner" in log  # where
    assert not (tmp_path / "output").exists() and not list(tmp_path.glob(".*.tmp*"))


def test_a_job_under_nohup_outlives_its_terminal(job, tmp_path):
    nohup = "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    returned, log = job("os.kill(os.getpid(), signal.SIGHUP)", before=nohup)
    assert returned == 0 and "Error" not in log
    assert (tmp_path / "output").read_text() == "whole"


@pytest.mark.fault("failed", "a job that crashes in compiled code", told="Fatal Python error: …")
@pytest.mark.parametrize(
    ("harm", "words"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "Segmentation fault"),
        ("os.abort()", "Aborted"),
        ("os.kill(os.getpid(), signal.SIGFPE)", "Floating"),
    ],
)
def test_a_job_that_crashes(job, harm, words):
    returned, log = job(harm)
    assert returned < 0
    assert f"Fatal Python error: {words}" in log and "in inner" in log


@pytest.mark.fault("failed", "an error in a job, of a user and of the code")
@pytest.mark.parametrize(
    ("harm", "last"),
    [
        ("raise ValueError('odd')", "ValueError: odd"),
        ("from fedcore.errors import InputError; raise InputError('A.')", "Error: A."),
    ],
)
def test_an_error_is_said_once(job, harm, last):
    returned, log = job(harm)
    assert returned == 1
    assert log.splitlines()[-1] == last and "ended" not in log

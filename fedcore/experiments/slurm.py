"""What a run asks SLURM before it starts: how jobs are watched, and which a killed run has left."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache

from fedcore.words import counted

EVERY = 20  # seconds between two looks at the jobs, the first of them; Snakemake's plugin waits
LONGEST = 180  # seconds at most, after a while in which no job has ended
PATIENCE = 120.0  # seconds for which cancelled jobs may take to leave


def _ask(*command: str) -> str | None:
    """Return what a program of SLURM prints; None where it is missing or fails."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout if done.returncode == 0 else None


@cache
def has_accounting() -> bool:
    """Return whether `sacct` answers; the program is there without a data base behind it, too."""
    return (
        _ask("sacct", "-X", "--noheader", "--format=JobID", "--starttime=now-1minutes") is not None
    )


@cache
def status_command() -> str:
    """Return the program that says which jobs have ended, and print which it is and why."""
    if has_accounting():
        return "sacct"
    if shutil.which("squeue"):
        print("Jobs are watched with squeue, as sacct does not answer here.", file=sys.stderr)
        age = _min_job_age()
        if age is not None and age <= LONGEST:
            print(
                f"For that, SLURM's MinJobAge should be 300 seconds and is {age}: a job that has "
                "ended may seem to run for ever. Then stop the run, and give the same command.",
                file=sys.stderr,
            )
    return "squeue"


def _min_job_age() -> int | None:
    """Return for how many seconds SLURM knows a job after its end."""
    found = re.search(r"^MinJobAge\s*=\s*(\d+)", _ask("scontrol", "show", "config") or "", re.M)
    return int(found[1]) if found else None


@cache
def seconds_between_looks() -> int:
    """Return the seconds between two looks at the jobs.

    Without accounting SLURM forgets a job some time after its end (``MinJobAge``). Snakemake's
    plugin uses squeue if three looks fall into it, and else sacct.
    """
    age = None if has_accounting() else _min_job_age()
    return max(1, min(EVERY, age // 3)) if age else EVERY


def cancel_jobs_of(runs: Sequence[str]) -> str:
    """Cancel the jobs that killed runs have left, wait until they are gone, and say so.

    Parameters
    ----------
    runs : sequence of str
        Names of runs, with which the names of their jobs begin.

    Returns
    -------
    str
        A sentence; empty where there is no SLURM, or no such job.
    """
    jobs = _jobs_of(runs)
    if not jobs:
        return ""
    running = sum(state != "PENDING" for state in jobs.values())
    _ask("scancel", *jobs)
    until = time.monotonic() + PATIENCE
    while (left := _jobs_of(runs)) and time.monotonic() < until:
        time.sleep(0.5)
    said = (
        f"The killed run had left {counted(len(jobs), 'job')} in the queue "
        f"({running} running): cancelled."
    )
    return f"{said} Still there: {' '.join(left)}." if left else said


def _jobs_of(runs: Sequence[str]) -> dict[str, str]:
    """Return number and state of the queued and running jobs of runs."""
    lines = (_ask("squeue", "--me", "--noheader", "--format=%A|%T|%j") or "").splitlines()
    rows = [line.split("|", 2) for line in lines if line.count("|") >= 2]
    return {job: state for job, state, name in rows if name.startswith(tuple(runs))}

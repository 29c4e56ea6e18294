"""What Snakemake does for a job does not grow with the number of jobs."""

from __future__ import annotations

import os
import subprocess
import sys

# In every process of the run; Snakemake's scheduler starts no timer for one more of its rounds.
COUNT = """
import os, threading

class Timer(threading.Timer):
    def __init__(self, interval, function, *args, **kwargs):
        with open(os.environ["TIMERS"], "a") as file:
            print(interval, function, file=file)
        super().__init__(interval, function, *args, **kwargs)

threading.Timer = Timer
"""


def test_the_rounds_of_the_scheduler_do_not_multiply(done, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(COUNT)
    (done.root / "results/tiny/tables/tiny/ends.tsv").unlink()
    timers = tmp_path / "timers"
    timers.touch()
    environment = done.environment | {"TIMERS": str(timers)}
    environment["PYTHONPATH"] += f"{os.pathsep}{tmp_path}"
    run = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "1", "--configfile", "tiny.yaml"],
        cwd=done.root, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "schedule" not in timers.read_text()

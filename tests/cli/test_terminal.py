"""What a person sees on a terminal while a command runs."""

import io
import json
import os
import sys

import pytest

from fedcore.cli.blas import VARIABLES
from fedcore.progress import RoundsBar
from processes import python

SAID = "--blas-threads"
LIMITED = """
import json, os
os.cpu_count = lambda: {cores}
import click, numpy, threadpoolctl
from fedcore.cli import blas

def state():
    pools = sorted({{str(pool["num_threads"]) for pool in threadpoolctl.threadpool_info()}})
    return pools, sorted({{os.environ.get(name) for name in blas.VARIABLES}} - {{None}})

@click.command()
def command():
    blas.limit_threads({threads})
    print(json.dumps(state()))

before = state()
command.main([], standalone_mode=False)
assert state() == before
"""


@pytest.mark.parametrize(
    ("cores", "threads", "variables", "set_to", "said"),
    [
        (2, None, {}, ["1"], 1),
        (1, None, {}, ["1"], 0),
        (2, 3, {}, ["3"], 0),
        (2, None, {"OMP_NUM_THREADS": "2"}, ["2"], 0),
        (2, 3, {"OMP_NUM_THREADS": "2"}, ["3"], 0),
    ],
)
def test_one_blas_thread_unless_asked_and_said_once(cores, threads, variables, set_to, said):
    environment = {k: v for k, v in os.environ.items() if k not in VARIABLES} | variables
    code = LIMITED.format(cores=cores, threads=threads)
    done = python("-c", code, env=environment)
    assert json.loads(done.stdout) == [set_to, set_to]
    assert done.stderr.count(SAID) == said


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(monkeypatch, rounds, ends):
    """What the bar shows of repeats that end after `ends` rounds."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    bar = RoundsBar("ssi on own", rounds, len(ends))
    for repeat in bar.repeats(range(len(ends))):
        for number in range(ends[repeat] + 1):
            bar.seen({"iteration": number, "round": number})
    return sys.stderr.getvalue().split("\r")[-1]


@pytest.mark.parametrize(
    ("rounds", "ends", "counted"),
    [(3, [3, 3], "6/6"), (3, [1, 2], "5/6"), (None, [4, 2], "6round")],
)
def test_the_bar_counts_rounds_of_all_repeats(monkeypatch, rounds, ends, counted):
    last = shown(monkeypatch, rounds, ends)
    assert "ssi on own" in last and counted in last and f"iteration {ends[-1]}" in last


def test_there_is_no_bar_where_nobody_looks(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    for _ in RoundsBar("ssi on own", 3, 1).repeats(range(1)):
        pass
    assert sys.stderr.getvalue() == ""

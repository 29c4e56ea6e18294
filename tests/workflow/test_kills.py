"""A run that is killed leaves no half file under a final name, and the next one finishes."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fedcore.errors import HistoryError
from fedcore.files import atomic
from fedcore.history import History
from fedcore.problems import storage
from mpiexec import alive
from processes import python
from refused import is_a_line, refused

# Every Python process of the run imports this code first. At one file operation the code makes a
# mark and waits, until a second mark appears. If the operation opens a temporary file to read it
# (for its checksum), the file is cut in half first, as if the process had died while writing.
HANG = """
import os, sys, time

OPERATION, FOLDER, NAME = os.environ["HANG_AT"].split(":")

def hook(event, args):
    if event != OPERATION:
        return
    path = str(args[1] if event == "os.rename" else args[0])
    if not (FOLDER in path and NAME in path):
        return
    if event == "open":
        job = "snakemake" not in sys.argv[0]
        if args[1] != "w" and not (args[1] == "r" and (job or ".tmp" in path)):
            return
        if args[1] == "w" and ".tmp" in path:
            return
        if ".tmp" in path:
            os.truncate(path, os.path.getsize(path) // 2)
    mark = os.environ["HANG_MARK"]
    if os.path.exists(mark):
        return
    os.mkdir(mark)
    with open(mark + "/pid", "w") as file:
        file.write(str(os.getpid()))
    for _ in range(36000):  # longer than any test: the test kills it, or lets it go on
        time.sleep(0.05)
        if os.path.exists(mark + "/go"):
            return

sys.addaudithook(hook)
"""

# Each file is made from the one before it; a run makes again all files from the first missing one.
CHAIN = [
    "data/clients/tiny/tiny/other.h5",
    "results/tiny/histories/tiny/second/power_gd/other-plain.h5",
    "results/tiny/tables/tiny/ends.tsv",
    "results/tiny/verdicts/tiny.tsv",
]

FIGURE = "os.rename:figures/:ends.png"  # in the kernel of the job that executes the notebook

# File operation at which the run is killed, number of files of the chain that exist then, and
# number of temporary files left behind.
POINTS = {
    "history half written": ("open:/.other-plain.:.tmp.h5", 1, 1),
    "verdicts written, not renamed": ("os.rename:verdicts/:tiny.tsv", 3, 2),
}
UNTOLD = "open:benchmarks/:other-plain.tsv"  # the history is there, and Snakemake is not told


@contextlib.contextmanager
def hung(checkout, at):
    """Start a run and wait until it reaches the file operation; at the end kill it and its jobs."""
    folder, mark = checkout.root / "hang", checkout.root / "there"
    folder.mkdir(exist_ok=True)
    shutil.rmtree(mark, ignore_errors=True)
    (folder / "sitecustomize.py").write_text(HANG)
    environment = checkout.environment | {"HANG_AT": at, "HANG_MARK": str(mark)}
    environment["PYTHONPATH"] += f"{os.pathsep}{folder}"
    run = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "1", "--configfile", "tiny.yaml"],
        cwd=checkout.root, env=environment, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        patience = time.monotonic() + 600
        while not (mark / "pid").exists() and run.poll() is None and time.monotonic() < patience:
            time.sleep(0.02)
        assert mark.exists(), "the run did not come to this point"
        yield run
    finally:
        with contextlib.suppress(ProcessLookupError):  # it ended by itself
            os.killpg(run.pid, signal.SIGKILL)
        run.wait()


def resume(checkout, *targets):
    """Unlock the folder as Snakemake's message says, and give the same command again."""
    checkout.run("--unlock")
    return checkout.run(*targets)


@pytest.mark.parametrize("point", POINTS)
def test_killed(first_run, done, point):
    at, there, temporary = POINTS[point]
    for name in CHAIN[there:]:
        (done.root / name).unlink()
    if "half" in point:  # first its job alone
        with hung(done, at) as run:
            os.kill(hung_process(done), signal.SIGKILL)
            assert run.wait(600) == 1
        assert not (done.root / CHAIN[there]).exists()
    with hung(done, at):
        second = done.snakemake()  # the lock of a run that is alive is respected
        assert second.status == 1 and "Directory cannot be locked" in second.text
        assert "caused by a kill signal or a power loss" in second.text
        assert "--unlock" in second.text

    for name in done.files("data/clients/**/*.h5"):
        storage.load(done.root / name)
    for name in done.files("results/**/*.h5"):
        History.load(done.root / name)
    left = list(done.root.glob("*/**/.*.tmp.*"))
    assert len(left) == temporary
    if "half" in point:
        refused(lambda: History.load(left[0]), HistoryError, "is not a whole")

    resumed = resume(done)
    assert not list(done.root.glob("*/**/.*.tmp.*"))
    assert "3 items as printed: 1 holds, 2 not run." in resumed.text
    assert done.payload() == first_run[0].payload()


def hung_process(checkout):
    return int((checkout.root / "there/pid").read_text())


def test_a_killed_notebook(first_run, done):
    """Its kernel or its job is killed: no kernel is left behind."""
    (done.root / "results/tiny/figures/tiny/ends.png").unlink()
    for killed in ("kernel", "job"):
        with hung(done, FIGURE) as run:
            kernel = hung_process(done)
            parent = Path(f"/proc/{kernel}/stat").read_text().rpartition(")")[2].split()[1]
            os.kill(int(parent) if killed == "job" else kernel, signal.SIGKILL)
            assert run.wait(600) == 1
            patience = time.monotonic() + 60
            while alive(kernel) and time.monotonic() < patience:
                time.sleep(0.05)
            assert not alive(kernel)
    done.run()
    assert done.payload() == first_run[0].payload()


def local_steps(checkout):
    return History.load(checkout.root / CHAIN[1]).about["params"]["local_steps"]


OLDER = {  # a file, the operation at which its job hangs, and an edit after which it is another
    "result": (CHAIN[1], "open:data/clients:other.h5", "{local_steps: 4}", "{local_steps: 5}"),
    "problem": (CHAIN[0], "import:fedcore.repro.commands.:jobs", "samples: 9, ", "samples: 10, "),
}


@pytest.mark.parametrize("kind", OLDER)
def test_what_an_older_job_makes_is_never_taken_for_a_new_one(done, kind):
    """Only Snakemake is killed; its job goes on and ends after the next run has made everything."""
    name, at, old, new = OLDER[kind]
    (done.root / name).unlink()
    with hung(done, at) as run:
        run.kill()
        run.wait()
        done.edit("papers/tiny/experiments.yaml", old, new)
        resume(done)
        made, job = done.payload(), hung_process(done)
        (done.root / "there/go").touch()
        patience = time.monotonic() + 600
        while alive(job) and time.monotonic() < patience:
            time.sleep(0.05)
        assert not alive(job)
    assert done.payload()[name] != made[name]  # it has written over the newer file
    refused = done.snakemake()
    assert refused.status == 1
    (said,) = {line for line in refused.text.splitlines() if line.startswith("Error: ")}
    is_a_line(said)
    assert name in said
    (done.root / name).unlink()
    done.run()
    assert done.payload() == made
    assert not list(done.root.glob("*/**/.*.tmp.*"))
    assert "Nothing to be done" in done.snakemake().text


def test_a_file_of_a_killed_run_is_made_again_as_nobody_knows_what_it_was_made_from(done):
    (done.root / CHAIN[1]).unlink()
    with hung(done, UNTOLD):
        pass
    assert local_steps(done) == 4 and not list(done.root.glob("*/**/.*.tmp.*"))
    done.edit("papers/tiny/experiments.yaml", "{local_steps: 4}", "{local_steps: 5}")
    resume(done, CHAIN[1])
    assert local_steps(done) == 5


# Every child has written a part of a file, which has a name already, when it is killed.
KILLED_WRITERS = """
import os, signal, sys, time
from fedcore.files import atomic

for number in range(int(sys.argv[2])):
    ready, told = os.pipe()
    child = os.fork()
    if not child:
        with atomic.replace(f"{sys.argv[1]}/t{number % 4}.tsv") as temporary:
            temporary.write_text("a part")
            os.write(told, b"!")
            time.sleep(600)
    os.read(ready, 1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


def test_temporary_files_of_killed_writers_are_removed(tmp_path):
    made = tmp_path / "results"
    made.mkdir()
    whole = {made / f"t{number}.tsv": "a whole table" for number in range(3)}
    for path, text in whole.items():
        path.write_text(text)
    python("-c", KILLED_WRITERS, made, 20)
    left = set(made.iterdir()) - whole.keys()
    assert len(left) == 20 and {path.read_text() for path in left} == {"a part"}
    atomic.remove_left_overs_of(made / "t1.tsv")
    assert len(set(made.iterdir()) - whole.keys()) == 15
    atomic.remove_left_overs(tmp_path)
    assert {path: path.read_text() for path in made.iterdir()} == whole


def test_only_what_fedcore_has_left_is_removed(tmp_path):
    mine = tmp_path / "results" / "tables" / f".t.{'0a' * 8}.tmp.tsv"
    others = [tmp_path / "results" / name for name in (".notes.tmp", ".t.12.tmp.tsv", "t.tsv")]
    folder = tmp_path / "results" / f".u.{'0a' * 8}.tmp"
    for path in (mine, *others, folder / "x"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    atomic.remove_left_overs_of(mine.with_name("u.tsv"))
    assert mine.exists()
    atomic.remove_left_overs(tmp_path)
    assert not mine.exists()
    assert all(path.exists() for path in (*others, folder / "x"))

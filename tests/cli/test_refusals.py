"""Commands that the command line does not take: one line says which word, and nothing is written.

The contents of users' files are in `test_files`, files of other kinds in `test_stored`.
"""

from __future__ import annotations

import shlex

import numpy as np
import pytest

from commands import call, refused_command
from fedcore.problems import storage
from fedcore.problems.problem import Problem

RUN = "run power_gd w8a --surrogate --components 3 --set local_steps=4 "
FILES = "a.csv b.csv -r 1 "
NETWORK = "run fedavg mnist --surrogate "
REFUSED = [  # a command, and what its line names
    (RUN + "--components 400", "n_components = 400"),
    (RUN + "--set local_stepps=4", "'local_stepps'", "'local_steps'"),
    (RUN + "--set local_steps=many", "local_steps", "'many'"),
    (RUN + "--set momentum=5", "momentum"),
    (RUN + "--set start=0", "start"),
    (RUN + "--metric objektive", "'objektive'", "'objective'"),
    (RUN + "--partition by=lable", "'lable'", "'label'"),
    (RUN + "--partition by=label --clients 3", "'clients'"),
    (RUN + "--clients 6000", "sample"),
    (RUN + "--out file/h.h5", "file"),
    ("run power_gdd w8a -r 3", "'power_gdd'", "'power_gd'"),
    *((f"run power_gd w8aa {more} -r 3", "'w8a'") for more in ("", "--clients 5", "mnist")),
    *((f"run power_gd w8a {more} -r 3", "w8a", "alone") for more in ("mnist", "a.csv")),
    ("run ssi w8a -r 1 --by age", "--by"),
    ("list methods pover_gd", "'power_gd'"),
    ("fetch w8a mnits", "'mnist'"),
    ("verdicts gone", "gone"),
    ("verdicts .", "verdicts"),
    ("compare ssj w8a -r 1", "'ssj'", "'ssi'"),
    ("compare ssi fapz w8a -r 1", "'fapz'", "'faps'"),
    (f"compare ssi {FILES} --set x=1", "x"),
    (f"compare ssi {FILES} --set rouns=1", "'rounds'"),
    (f"compare ssi fedavg {FILES}", "metric"),
    (f"compare ssi {FILES} --out run.h5", "folder"),
    (f"run ssi {FILES} --clients 2", "--clients"),
    (f"run ssi {FILES} --by agee", "'agee'", "'age'"),
    (f"run ssi {FILES} --out run.csv", ".h5"),
    ("run ssi a.csv b.csv a.csv -r 1", "a.csv", "twice"),
    (f"run analyze_gauss {FILES} --set clip=true --center", "--center"),
    (f"run analyze_gauss {FILES} --set clip=true --center --scale", "--center", "--scale"),
    (NETWORK + "--set model=femnist_mlp --scale", "--scale"),
    (f"run noisy_power {FILES} --simulate", "client 0 ('a.csv')", "row"),
    (f"run fedrep_linear {FILES}", "--labels"),
    ("run fedavg c.csv a.csv --labels iron --set model=tiny_mlp", "client 0 ('c.csv')"),
    ("run ssi equal.csv -r 1 --center", "drop --center"),
    ("run ssi gone.csv -r 1", "gone.csv"),
    ("run ssi gone.h5 -r 2", "gone.h5"),
    ("run ssi problem.h5 a.csv -r 2", "problem"),
    ("run ssi problem.h5 -r 2 --clients 3", "--clients"),
    (NETWORK + "--set model=femnist_mlp -r 2", "drop --components"),
    (NETWORK, "'model'"),
    ("run ssi mnist --surrogate -r 2 --held-out test", "--held-out"),
    ("pca ''", "empty name"),
    ("pca a.csv --skip-lines 99999999999999999999", "skipped lines"),
]
USAGE = [
    RUN + "--set power", RUN + "--set n_components=2", RUN + "--partition label",
    RUN + "--partition by=even,clients=3 --clients 3", RUN + "--seed -1", RUN + "--repeats 0",
    f"compare ssi {FILES} --set sssi.rounds=1", "compare ssi -r 1",
    NETWORK + "--set model=femnist_mlp --held-out 2", "run ssi mnist --surrogate",
    f"compare ssi {FILES} --plot ''", "pca a.csv --plot ''",
    f"compare ssi {FILES} --plot .", "pca a.csv --plot no/", "plot gone.h5 --out ..",
    "pca a.csv --blas-threads 99999999999999999999",
]  # fmt: skip
# Options that name where to write, in a folder that is not there.
WRITES = [
    RUN + "--out", f"compare ssi {FILES} --out", f"compare ssi {FILES} --plot",
    "fetch w8a --raw", "run ssi w8a -r 1 --raw",
]  # fmt: skip


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder with tables, a problem and a file; nothing may be added to it."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    for name, n in (("a.csv", 20), ("b.csv", 12), ("c.csv", 1)):
        x = rng.standard_normal((n, 3)) * [9, 3, 1] + [50, 7, 3]
        np.savetxt(name, x, delimiter=",", header="age,dose,iron", comments="")
    np.savetxt("equal.csv", np.ones((3, 2)), delimiter=",", header="age,dose", comments="")
    storage.save(Problem("own", [np.eye(3)]), "problem.h5")
    (tmp_path / "file").write_text("")
    before = sorted(tmp_path.rglob("*"))
    yield
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(("command", "names"), [(words, names) for words, *names in REFUSED])
def test_a_command_that_cannot_be_carried_out(command, names):
    line = refused_command(*shlex.split(command))
    assert all(name in line for name in names), line


def test_advice_names_options_of_the_command_alone():
    """`pca` always subtracts the mean, and no command has --no-center."""
    assert "--" not in refused_command("pca", "equal.csv")


@pytest.mark.parametrize("command", USAGE)
def test_misspelt_commands_have_status_2(command):
    done = call(*shlex.split(command))
    assert done.exit_code == 2 and "Error: " in done.stderr


@pytest.mark.parametrize("command", WRITES)
def test_a_folder_that_is_not_there_is_not_made(command):
    line = refused_command(*shlex.split(command), "no/deeper/x.h5")
    assert command.split()[-1] in line and "no/deeper" in line

"""`fedcore deploy --simulate`: runs in FLARE's simulator, a process for each site, and refusals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from flare_kits import ENVIRONMENT, fedcore, needs_flare, process_of, wait_for

from fedcore.history import History

pytestmark = [needs_flare, pytest.mark.slow]
SIZES = {"north": 30, "south": 11, "west": 45, "east": 22}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a table for each site; their rows have norm 1 at most."""
    found, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    for name, rows in SIZES.items():
        x = rng.standard_normal((rows, 12)) * 0.8 ** np.arange(12)
        x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1.0)
        header = ",".join(f"f{i}" for i in range(12))
        np.savetxt(found / f"{name}.csv", x, "%.17g", ",", header=header, comments="")
    return found


def deploy(folder, out, algorithm, *words, check=True):
    sites = [word for name in SIZES for word in ("--site", f"{name}={name}.csv")]
    given = ("-r", "2", "--out", out, "--simulate", *words)
    return fedcore("deploy", algorithm, *sites, *given, cwd=folder, check=check)


@pytest.mark.parametrize(
    ("algorithm", "words", "own"),
    [
        ("ssi", ["--set", "rounds=30", "--center"], {}),
        ("power_gd", ["--set", "local_steps=30"], {"U"}),
        ("faps", ["--set", "rounds=6"], {"X", "W"}),
    ],
)
def test_four_processes_find_the_basis_of_one_bit_for_bit(folder, tmp_path, algorithm, words, own):
    deploy(folder, tmp_path / "out", algorithm, *words)
    files = [f"{name}.csv" for name in SIZES]
    given = ("-r", "2", "--engine", "plain", "--out", tmp_path / "plain.h5")
    fedcore("run", algorithm, *files, *given, *words, cwd=folder)
    there, here = History.load(tmp_path / "out/history.h5"), History.load(tmp_path / "plain.h5")
    assert there.final.keys() == here.final.keys() and not own & there.final.keys()
    for name, array in here.final.items():
        assert there.final[name].tobytes() == array.tobytes(), name
    for column in ("round", "bytes_up", "bytes_down"):
        np.testing.assert_array_equal(there[column], here[column])
    for site, rows in SIZES.items():
        results = tmp_path / "out/sites" / site / "results/simulate_job"
        left = json.loads((results / "run0-left.json").read_text())
        assert sum(step["bytes"] for step in left.values()) * 4 == there["bytes_up"][0, -1]
        if own:
            saved = np.load(results / "run0.npz")
            assert set(saved) == own and np.isfinite(saved[min(own)]).all()
            assert algorithm != "power_gd" or saved["U"].shape == (rows, 2)


PRIVATE = ("--set", "epsilon=1", "--set", "delta=1e-6", "--set", "rounds=4")


def test_a_budget_is_that_of_all_jobs_and_is_refused_by_name(folder, tmp_path):
    out = tmp_path / "out"
    deploy(folder, out, "noisy_power", *PRIVATE, "--max-epsilon", "1.2")
    found = History.load(out / "history.h5")
    assert found.last("epsilon")[0] == pytest.approx(1.0, rel=0.01)
    assert "n_samples" not in found.about["problem"]
    again = tmp_path / "again"  # another job, on the accounts of the first
    sites = [word for name in SIZES for word in ("--site", f"{name}={name}.csv")]
    words = (*sites, "-r", "2", "--out", again, *PRIVATE, "--max-epsilon", "1.2")
    fedcore("deploy", "noisy_power", *words, cwd=folder)
    for name in SIZES:
        os.link(out / "sites" / name / "account.fed", again / "sites" / name / "account.fed")
    done = simulated(again)
    assert "RefusedError" not in done.stderr and "client 0 refuses to go on" in done.stderr
    assert done.stderr.startswith("north: ") and "allows 1.2" in done.stderr
    assert not (again / "history.h5").exists()


SIMULATE = """
import sys
from pathlib import Path
from fedcore.errors import FedcoreError
from fedcore.experiments import flare_kit
try:
    flare_kit.simulate(Path(sys.argv[1]), Path(sys.argv[1]) / "simulator")
except FedcoreError as error:
    sys.exit(str(error))
"""


def simulated(out, **variables):
    """Run a deployed job whose sites' files have been changed."""
    return subprocess.run(
        [sys.executable, "-c", SIMULATE, str(out)], env={**ENVIRONMENT, **variables},
        capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def change(out, site, **settings):
    """Edit a site's file, as its owner does."""
    path = out / "sites" / site / "site.yaml"
    lines = path.read_text().splitlines()
    for key, value in settings.items():
        lines = [f"{key}: {value}" if line.startswith(f"{key}:") else line for line in lines]
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("words", "site", "rule", "said"),
    [
        (["ssi"], "south", {"max_epsilon": 1.0}, "south: client 1 uploads nothing"),
        (["power_gd", "--evaluation"], "west", {"evaluation": "false"},
         "west: client 2 shows nothing for evaluation"),
        (["ssi"], "east", {"modules": "[elsewhere]"},
         "east: fedcore.parts.gram_products is not allowed here"),
        (["ssi"], "north", {"data": "gone.csv"}, "north: there is no file"),
    ],
)  # fmt: skip
def test_what_one_site_refuses_ends_the_run_with_its_sentence(
    folder, tmp_path, words, site, rule, said
):
    sites = [word for name in SIZES for word in ("--site", f"{name}={name}.csv")]
    out = tmp_path / "out"
    fedcore("deploy", *words, *sites, "-r", "2", "--out", out, cwd=folder)
    change(out, site, **rule)
    done = simulated(out)
    assert done.returncode == 1 and said in done.stderr and done.stderr.count("\n") == 1
    assert (out / "failed.txt").read_text() == done.stderr
    assert not list(out.rglob("history.h5"))


ELSEWHERE = '''
"""SSI of another package, whose step differs at the sites."""
from fedcore.algorithms import ssi
from fedcore.algorithms.ssi import Params, communication
from fedcore.linalg import orth
import sys

if "simulator_worker" in " ".join(sys.orig_argv) and {differs}:
    def product(data, state, Z):
        return 2 * data.T @ (data @ Z)
else:
    def product(data, state, Z):
        return data.T @ (data @ Z)

PAPER = "faps"

def run(federation, params, rng, record):
    """Run it.

    Returns
    -------
    dict
        ``basis``.
    """
    Z = ssi.starting_basis(federation, params, rng)
    record(0, basis=Z)
    for k in record.rounds(params.rounds):
        federation.broadcast(Z)
        Z = orth(federation.sum(product))
        record(k, basis=Z)
    return {{"basis": Z}}
'''


@pytest.mark.parametrize(
    ("differs", "modules", "said"),
    [
        (False, "[fedcore]", "north: elsewhere.other is not allowed here"),
        (True, "[fedcore, elsewhere]", "north: the step product of elsewhere.other differs from"),
        (False, "[fedcore, elsewhere]", None),
    ],
)
def test_steps_of_others_run_where_they_are_installed_allowed_and_the_same(
    folder, tmp_path, installed, differs, modules, said, monkeypatch
):
    package = tmp_path / "package"
    (package / "elsewhere").mkdir(parents=True)
    (package / "elsewhere" / "__init__.py").touch()
    (package / "elsewhere" / "other.py").write_text(ELSEWHERE.format(differs=differs))
    installed(package, "elsewhere", "[fedcore.algorithms]\nother = elsewhere.other\n")
    path = os.pathsep.join([ENVIRONMENT["PYTHONPATH"], str(package)])
    monkeypatch.setitem(ENVIRONMENT, "PYTHONPATH", path)
    sites = [word for name in SIZES for word in ("--site", f"{name}={name}.csv")]
    out = tmp_path / "out"
    words = ("other", *sites, "-r", "2", "--set", "rounds=3", "--out", out)
    fedcore("deploy", *words, cwd=folder)
    for site in SIZES:
        change(out, site, modules=modules)
    done = simulated(out)
    assert (said or "") in done.stderr and (done.returncode == 1) == bool(said)


@pytest.mark.fault(
    "killed", "kill −9 of a site of FLARE", told="the site … was lost in the middle of the run: …"
)
@pytest.mark.parametrize("site", ["north", "east"])
def test_a_killed_site_ends_the_run_with_a_marked_history(folder, tmp_path, site):
    sites = [word for name in SIZES for word in ("--site", f"{name}={name}.csv")]
    words = ("-r", "2", "--set", "rounds=10000000", "--set", "tol=0", "--out", tmp_path / "out")
    process = subprocess.Popen(
        [sys.executable, "-m", "fedcore", "deploy", "ssi", *sites, *map(str, words), "--simulate"],
        cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    log = tmp_path / "out/simulator" / site / "log.txt"
    wait_for(lambda: log.exists() and "initializing client app" in log.read_text(), "the site")
    time.sleep(8)  # it is in the middle of its rounds
    victim = process_of(process.pid, f"simulator_worker.*--client {site} ")
    os.kill(victim, signal.SIGKILL)
    _, err = process.communicate(timeout=180)
    assert process.returncode == 1
    assert f"Error: the site {site} was lost in the middle of the run: start its client" in err
    assert not list((tmp_path / "out").rglob("history.h5"))
    found = History.load(tmp_path / "out/history.incomplete.h5")
    assert f"the site {site} was lost" in found.about["incomplete"]
    assert found.columns["round"][0, -1] > 1
    shown = fedcore("show", tmp_path / "out/history.incomplete.h5", cwd=folder)
    assert "INCOMPLETE, the run was ended: the site" in shown.stdout
    assert process_of(process.pid, "simulator") is None

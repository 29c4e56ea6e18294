"""A server and four sites as FLARE provisions them: processes with mutual TLS, on this machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
from flare_kits import Organisations, fedcore, needs_flare, process_of, wait_for

from fedcore.history import History

pytestmark = [needs_flare, pytest.mark.slow]
SIZES = {"north": 30, "south": 11, "west": 45, "east": 22}
SITES = [word for name in SIZES for word in ("--site", f"{name}={name}.npz")]
FILES = [f"{name}.npz" for name in SIZES]
WIDE = ("ssi", "-r", "10", "--set", "rounds=10", "--set", "tol=0")  # of 1000 features


def tables(folder, width):
    rng = np.random.default_rng(0)
    folder.mkdir()
    for name, rows in SIZES.items():
        np.savez(folder / f"{name}.npz", x=rng.standard_normal((rows, width)))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("four")


@pytest.fixture(scope="module")
def narrow(folder):
    return tables(folder / "narrow", 12)


@pytest.fixture(scope="module")
def organisations(folder, narrow):
    """Return running organisations, whose sites have the narrow tables."""
    fedcore("deploy", "ssi", *SITES, "-r", "2", "--out", folder / "sites", cwd=narrow)
    folders = {name: folder / "sites/sites" / name for name in SIZES}
    with Organisations(folder / "organisations", folders) as running:
        yield running


def job(folder, name, *words, data):
    """Return a job; the sites keep their own files."""
    fedcore("deploy", *words, *SITES, "--out", folder / name, cwd=data)
    return folder / name / "job"


def test_the_connections_have_mutual_tls(organisations):
    for name in SIZES:
        config = json.loads((organisations.kits / name / "startup/fed_client.json").read_text())
        assert config["client"]["connection_security"] == "mtls"


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [("ssi", ["--set", "rounds=200", "--set", "tol=0"]), ("power_gd", ["--set", "local_steps=30"])],
)
def test_four_organisations_find_the_basis_of_one_process(
    organisations, folder, narrow, algorithm, words
):
    name = f"job-{algorithm}"
    found = organisations.run_job(
        job(folder, name, algorithm, "-r", "2", *words, data=narrow), folder / f"got-{name}"
    )
    assert found["status"] == "FINISHED:COMPLETED"
    plain = folder / f"{name}.h5"
    words = (*FILES, "-r", "2", "--engine", "plain", *words, "--out", plain)
    fedcore("run", algorithm, *words, cwd=narrow)
    there, here = History.load(found["files"] / "history.h5"), History.load(plain)
    for key, array in here.final.items():
        assert there.final[key].tobytes() == array.tobytes(), key
    traffic = json.loads((found["files"] / "traffic.json").read_text())
    print(f"{algorithm}: {traffic}")
    assert algorithm != "ssi" or (traffic["exchanges"] > 200 and traffic["median_seconds"] < 0.1)
    saved = [folder / "sites/sites" / n / "results" / found["job"] / "run0.npz" for n in SIZES]
    assert all(path.exists() == (algorithm == "power_gd") for path in saved)
    where = {path.name for path in found["files"].iterdir()}
    assert where == {"history.h5", "traffic.json"}


def test_a_job_with_code_is_refused_by_the_sites(organisations, folder, narrow):
    mine = job(folder, "code", "ssi", "-r", "2", data=narrow)
    custom = mine / "app_site" / "custom"
    custom.mkdir()
    (custom / "mine.py").write_text("raise SystemExit\n")
    config = mine / "app_site/config/config_fed_client.json"
    config.write_text(config.read_text().replace("fedcore.experiments.flare_client", "mine"))
    console = organisations.start_job(mine, folder / "got-code")
    out, err = console.communicate(timeout=400)
    assert "COMPLETED" not in out and not list(folder.glob("got-code/**/history.h5"))
    assert re.search(
        "(?i)byoc|not permitted|not authorized|denied", out + err + organisations.logs()
    )


def test_a_job_that_names_another_class_is_refused_by_the_sites(organisations, folder, narrow):
    mine = job(folder, "class", "ssi", "-r", "2", data=narrow)
    config = mine / "app_site/config/config_fed_client.json"
    other = "nvflare.app_common.np.np_trainer.NPTrainer"  # FLARE's own list has it
    config.write_text(config.read_text().replace("fedcore.experiments.flare_client.Client", other))
    console = organisations.start_job(mine, folder / "got-class")
    out, _ = console.communicate(timeout=400)
    assert "COMPLETED" not in out and not list(folder.glob("got-class/**/history.h5"))
    log = (organisations.folder / "north.log").read_text(errors="replace")
    assert f"Component '{other}'" in log and "is not in allow_list" in log


@pytest.mark.fault(
    "killed", "kill −9 of a site of FLARE", told="the site … was lost in the middle of the run: …"
)
def test_a_killed_organisation_ends_the_run_with_a_marked_history(organisations, folder, narrow):
    """The last test of these organisations: one of them is gone."""
    words = ("ssi", "-r", "2", "--set", "rounds=10000000", "--set", "tol=0")
    west = organisations.kits / "west"
    before = set(west.glob("*/log.txt"))
    console = organisations.start_job(job(folder, "long", *words, data=narrow), folder / "got-long")
    wait_for(
        lambda: any(
            "initializing client app" in log.read_text(errors="replace")
            for log in set(west.glob("*/log.txt")) - before
        ),
        "the job at west",
    )
    time.sleep(10)  # it is in the middle of its rounds
    victim = process_of(organisations.processes["west"].pid, "client.worker_process")
    assert victim
    os.kill(victim, signal.SIGKILL)
    found = organisations.ended(console)
    assert found["status"] != "FINISHED:COMPLETED"
    said = (found["files"] / "failed.txt").read_text()
    assert said.startswith("the site west was lost in the middle of the run: start its client")
    assert not (found["files"] / "history.h5").exists()
    history = History.load(found["files"] / "history.incomplete.h5")
    assert "the site west was lost" in history.about["incomplete"]
    assert history["round"][0, -1] > 1


def can_trace():
    strace = shutil.which("strace")
    return (
        strace
        and subprocess.run([strace, "-f", "-qq", "true"], capture_output=True).returncode == 0
    )


@pytest.mark.skipif(not can_trace(), reason="needs strace, and the right to use it")
def test_the_server_opens_no_file_of_a_site_and_the_ledger_is_what_crosses(folder):
    wide = tables(folder / "wide", 1000)
    fedcore("deploy", *WIDE, *SITES, "--out", folder / "pca", cwd=wide)
    folders = {name: folder / "pca/sites" / name for name in SIZES}
    opens, sends = folder / "opens.txt", folder / "sends.txt"
    wrap = {
        "localhost": ["strace", "-f", "-qq", "-e", "trace=open,openat", "-o", str(opens)],
        "north": ["strace", "-f", "-qq", "-yy", "-e", "trace=%network,read,write,readv,writev",
                  "-o", str(sends)],
    }  # fmt: skip
    with Organisations(folder / "traced", folders, wrap) as running:
        port = re.search(r"fed_learn_port: (\d+)", (running.folder / "project.yml").read_text())[1]
        found = running.run_job(folder / "pca/job", folder / "got-wide")
    assert found["status"] == "FINISHED:COMPLETED"
    history = History.load(found["files"] / "history.h5")
    traffic = json.loads((found["files"] / "traffic.json").read_text())
    for way in ("up", "down"):
        ledger = history.last(f"bytes_{way}")[0]
        assert ledger == 4 * 10 * 1000 * 10 * 8
        assert 0 < traffic[f"bytes_{way}"] - ledger < 0.01 * ledger
    crossed = {"up": 0, "down": 0}
    calls = re.compile(rf"^\d+ +(\w+)\(\d+<TCP.*->\S*:{port}.*= (\d+)$")
    for line in sends.read_text(errors="replace").splitlines():
        if call := calls.match(line):
            up = call[1].startswith(("send", "write"))
            crossed["up" if up else "down"] += int(call[2])
    print(f"ledger {ledger / 4:.0f} each way, carried {traffic}, on the wire of north {crossed}")
    assert all(ledger / 4 < crossed[way] < 1.5 * ledger / 4 for way in crossed)
    opened = set(re.findall(r'"([^"]+)"', opens.read_text(errors="replace")))
    assert any(path.endswith("fedcore.json") for path in opened)
    own = [wide, *folders.values(), *(running.kits / name for name in SIZES)]
    assert not [path for path in opened if any(path.startswith(str(one)) for one in own)]

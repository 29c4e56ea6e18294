"""The profiles for clusters in dry runs: their options, and what jobs ask for and share."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

PROFILES = Path(__file__).parents[2] / "workflow/profiles"
PLUGINS = {"slurm": "slurm", "lsf": "lsf", "kubernetes": "cluster_generic"}
PLAIN = "results/tiny/histories/tiny/second/power_gd/other-plain.h5"


def without_plugin(checkout, name):
    """Use a profile where its plugin is not installed, without the plugin's own options."""
    profile = checkout.root / "workflow/profiles" / name / "profile.yaml"
    settings = yaml.safe_load(profile.read_text())
    if importlib.util.find_spec(f"snakemake_executor_plugin_{PLUGINS[name]}") is None:
        own = PLUGINS[name].replace("_", "-") + "-"
        kept = {k: v for k, v in settings.items() if k != "executor" and not k.startswith(own)}
        profile.write_text(yaml.safe_dump(kept))
    return ["--workflow-profile", str(profile.parent.relative_to(checkout.root))], settings


@pytest.mark.parametrize("name", PLUGINS)
def test_a_dry_run_accepts_every_option(fresh, name):
    """Those of the plugin are tested only where it is installed."""
    options, settings = without_plugin(fresh, name)
    assert settings["executor"] == PLUGINS[name].replace("_", "-")
    assert settings["rerun-incomplete"] is True and settings["retries"] == 0
    run = fresh.snakemake("-n", *options, cores=8)
    assert run.status == 0, run.text
    assert f"Using workflow specific profile workflow/profiles/{name}" in run.text
    assert f"runtime={settings['default-resources']['runtime']}, turn=1" in run.text
    # A job for more cores than a node has would stay in the queue for ever.
    assert "rule report:" in run.text and "threads:" not in run.text


def test_every_profile_is_tested():
    assert {path.name for path in PROFILES.iterdir()} == set(PLUGINS)


@pytest.mark.fault("configuration", "a misspelt option in a profile")
@pytest.mark.parametrize("option", ["executer", "retry"])
def test_a_misspelt_option_is_refused(fresh, option):
    """A dry run detects a wrong option, so the tests above can fail."""
    (fresh.root / "workflow/profiles/slurm/profile.yaml").write_text(f"{option}: 1\n")
    assert fresh.snakemake("-n", "--workflow-profile", "workflow/profiles/slurm").status != 0


def shared(checkout, *args):
    """Cells that share jobs, by job, and the MB and minutes that each cell asks for."""
    options, _ = without_plugin(checkout, "slurm")
    run = checkout.snakemake("-n", *options, *args, "--forceall")
    assert run.status == 0, run.text
    groups, asked = [], {}
    for block in re.split(r"^\[.*?\] ?", run.text, flags=re.MULTILINE):
        found = re.findall(r"output: results/tiny/histories/tiny/(\S+)\.h5", block)
        asks = re.findall(r"resources: .*?mem_mb=(\S+), .*?runtime=(\d+)", block)
        asked.update(dict(zip(found, asks, strict=False)) if found else {})
        if block.startswith("Group job"):
            groups.append(set(found))
    return groups, asked


def test_cells_that_took_seconds_share_a_job_with_others_on_their_problem(done):
    plain, momentum = (f"second/power_gd/other-{name}" for name in ("plain", "momentum"))
    first = {f"first/{name}/easy-default" for name in ("power_iteration", "wk2023")}
    groups, asked = shared(done)
    assert {plain, momentum} in groups and first in groups
    benchmark = done.root / f"results/tiny/benchmarks/tiny/{plain}.tsv"
    benchmark.write_text("s\tcpu_time\tmax_rss\n300\t300\t1000\n")
    os.utime(benchmark, (2e9, 2e9))
    groups, asked = shared(done)
    assert not any(plain in group for group in groups)  # it takes minutes
    assert asked[plain] == ("1250", "22")
    benchmark.write_text("s\tcpu_time\tmax_rss\n3\t3\t1000\n")
    os.utime(benchmark, (2e9, 2e9))
    assert {plain, momentum} in shared(done)[0]
    os.utime(benchmark, (1, 1))
    assert not any(plain in group for group in shared(done)[0])  # it failed the last time
    assert {len(group) for group in shared(done, "--group-components", "short=1")[0]} == {1}


@pytest.mark.parametrize(("device", "asked"), [("cuda:1", "1"), ("together", None)])
def test_networks_ask_for_a_gpu_where_they_are_trained_on_one(fresh, device, asked):
    """By the key that Snakemake's plugin turns into ``--gpus``; no other job does.

    One method runs over MPI, by a rule of its own.
    """
    pytest.importorskip("torch", reason="networks need PyTorch, the extra deep")
    over_mpi = "      - {algorithm: local_only, engine: mpi, ranks: 2}\n"
    fresh.edit("config/papers/fedrep.yaml", "      - algorithm: local_only\n", over_mpi)
    options, _ = without_plugin(fresh, "slurm")
    config = ["--configfile", "config/quick.yaml", "--config", "papers=[fedrep,fedrep_linear]"]
    dry = subprocess.run(
        [sys.executable, "-m", "snakemake", "-n", "--cores", "1", *options, *config],
        cwd=fresh.root, env=fresh.environment | {"FEDCORE_DEVICE": device}, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert dry.returncode == 0, dry.stdout
    assert "rule ranks_local_only:" in dry.stdout and "rule run_fedrep:" in dry.stdout
    found = {"fedrep": set(), "others": set()}
    for block in re.split(r"^\[.*?\] ?|\n\n", dry.stdout, flags=re.MULTILINE):
        if (resources := re.search(r"^ *resources: (.*)", block, re.MULTILINE)) is None:
            continue
        network = "output: results/quick/histories/fedrep/" in block
        gpu = re.search(r"\bgpu=(\d+)", resources[1])
        found["fedrep" if network else "others"].add(gpu and gpu[1])
    assert found == {"fedrep": {asked}, "others": {None}}


@pytest.mark.fault(
    "cluster",
    "a job of a killed run that a cluster starts after the next run",
    told="… which was killed, and a later run has begun",
)
def test_a_late_job_of_a_killed_run_leaves_the_newer_result(done):
    """The process that a cluster starts for a job, with and without the mark of a later run."""
    made = (done.root / PLAIN).read_bytes()
    runs = done.root / ".snakemake/runs"
    runs.mkdir(exist_ok=True)
    (runs / "fedcore-0.over").touch()
    target = "run_power_gd:paper=tiny,experiment=second,algorithm=power_gd,cell=other-plain"
    call = [
        sys.executable, "-m", "snakemake", "--target-jobs", target, "--force", "--nolock",
        "--mode", "remote", "--cores", "1", "--configfile", "tiny.yaml", "--config", "seed=7",
    ]  # fmt: skip

    def late():
        environment = done.environment | {"FEDCORE_RUN": str(runs / "fedcore-0")}
        return subprocess.run(call, cwd=done.root, env=environment, capture_output=True, text=True)

    refused = late()
    assert refused.returncode == 1
    assert "fedcore-0, which was killed, and a later run has begun" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert (done.root / PLAIN).read_bytes() == made
    (runs / "fedcore-0.over").unlink()
    accepted = late()
    assert accepted.returncode == 0, accepted.stderr
    assert (done.root / PLAIN).read_bytes() != made


def test_a_pod_runs_the_script_in_the_checkout(tmp_path):
    """With a `kubectl` that runs what it is given, here."""
    kubectl = tmp_path / "kubectl"
    kubectl.write_text("#!/bin/sh\ncat > job.json\n")
    kubectl.chmod(0o755)
    (tmp_path / "script.sh").write_text('echo "$FEDCORE_RUN" > ran\nexit 1\n')
    call = [
        sys.executable, PROFILES / "kubernetes/pod.py", "--image", "x:1", "--claim", "disk",
        "--mount", "/work", "--cores", "2", "--memory", "1700", "--minutes", "5",
    ]  # fmt: skip
    run = str(tmp_path / "runs" / "fedcore-0")
    environment = os.environ | {"PATH": f"{tmp_path}:/usr/bin:/bin", "FEDCORE_RUN": run}
    done = subprocess.run(
        [*call, "script.sh"], cwd=tmp_path, env=environment, check=True, capture_output=True
    )
    assert done.stdout == b""  # no number, so that no later run takes the job over
    job = json.loads((tmp_path / "job.json").read_text())
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert job["metadata"]["labels"] == {"run": "fedcore-0"}
    assert job["spec"]["activeDeadlineSeconds"] == 300
    assert container["resources"]["requests"] == {"cpu": "2", "memory": "1700M"}
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == "disk"
    told = {entry["name"]: entry["value"] for entry in container["env"]}
    assert container["workingDir"] == str(tmp_path)
    ended = subprocess.run(container["command"], cwd=container["workingDir"], env=told)
    assert ended.returncode == 0  # Kubernetes must not start a job again that has failed by itself
    assert (tmp_path / "ran").read_text().strip() == run

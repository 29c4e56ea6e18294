"""The profiles for clusters in dry runs: their options, and what jobs ask for and share."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
import yaml

from processes import program

PROFILES = Path(__file__).parents[2] / "workflow/profiles"
EXECUTORS = {"slurm": "slurm", "lsf": "lsf", "kubernetes": "cluster-generic"}
NAMES = tuple(EXECUTORS)
PLAIN, MOMENTUM = (f"second/power_gd/other-{name}" for name in ("plain", "momentum"))
HISTORIES = "results/tiny/histories/tiny"


def without_plugin(checkout, name):
    """Use a profile where its plugin is not installed, without the plugin's own options."""
    profile = checkout.root / "workflow/profiles" / name / "profile.yaml"
    settings = yaml.safe_load(profile.read_text())
    executor = EXECUTORS[name]
    module = f"snakemake_executor_plugin_{executor.replace('-', '_')}"
    if importlib.util.find_spec(module) is None:
        own = ("executor", f"{executor}-")
        kept = {k: v for k, v in settings.items() if not k.startswith(own)}
        profile.write_text(yaml.safe_dump(kept))
    return ["--workflow-profile", str(profile.parent.relative_to(checkout.root))], settings


def test_a_job_of_kubernetes_mounts_the_checkout(tmp_path):
    """With a stand-in for kubectl, which shows what it is asked to make."""
    (tmp_path / "kubectl").write_text("#!/bin/sh\ncat\n")
    (tmp_path / "kubectl").chmod(0o755)
    asked = ["image:1", "claim", "/mounted", "2", "3000", "5", "/work dir/script.sh"]
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    made = program(PROFILES / "kubernetes/submit.sh", *asked, env=path)
    assert made.stdout == ""
    job = yaml.safe_load(made.stderr)["spec"]
    (container,) = job["template"]["spec"]["containers"]
    assert job["activeDeadlineSeconds"] == 300
    assert (container["image"], container["command"][-1]) == ("image:1", "/work dir/script.sh")
    assert container["resources"]["requests"] == {"cpu": "2", "memory": "3000M"}
    assert container["volumeMounts"] == [{"name": "checkout", "mountPath": "/mounted"}]
    (volume,) = job["template"]["spec"]["volumes"]
    assert volume["persistentVolumeClaim"] == {"claimName": "claim"}


@pytest.mark.parametrize("name", NAMES)
def test_a_dry_run_accepts_every_option_and_what_a_profile_shows_as_a_comment(fresh, name):
    """Those of the plugin are tested only where it is installed.

    By the comments cells share jobs, and one algorithm asks for more.
    """
    profile = fresh.root / "workflow/profiles" / name / "profile.yaml"
    text = profile.read_text()
    setting = r"^# ((?:set-resources|groups|group-components):| +\w+:(?: \w+)?)$"
    shown = re.sub(setting, r"\1", text, flags=re.MULTILINE)
    profile.write_text(shown.replace("run_ssi", "run_power_gd").replace("run_fedrep", "run_wk2023"))
    options, settings = without_plugin(fresh, name)
    assert settings["executor"] == EXECUTORS[name]
    assert settings["rerun-incomplete"] is True
    assert settings["groups"] == {"run_power_gd": "cells"}
    run = fresh.run("-n", *options, cores=8)
    assert f"Using workflow specific profile workflow/profiles/{name}" in run.text
    blocks = re.split(r"^\[.*?\] ?", run.text, flags=re.MULTILINE)
    groups = [block for block in blocks if block.startswith("Group job")]
    assert any(PLAIN in group and MOMENTUM in group for group in groups), run.text
    runtime = settings["default-resources"]["runtime"]
    asked = {
        "tables_tiny": {"runtime": runtime},
        "run_wk2023": settings["set-resources"]["run_wk2023"],
    }
    for rule, wanted in asked.items():
        resources = re.search(rf"rule {rule}:\n(?:    .*\n)*    resources: (.*)", run.text)[1]
        for key, value in wanted.items():
            assert re.search(rf"\b{key}={value}\b", resources)

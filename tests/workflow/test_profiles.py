"""The profiles for clusters in dry runs: their options, and what jobs ask for and share."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
import yaml

PROFILES = Path(__file__).parents[2] / "workflow/profiles"
NAMES = ("slurm", "lsf", "kubernetes")
PLAIN, MOMENTUM = (f"second/power_gd/other-{name}" for name in ("plain", "momentum"))
HISTORIES = "results/tiny/histories/tiny"


def without_plugin(checkout, name):
    """Use a profile where its plugin is not installed, without the plugin's own options."""
    profile = checkout.root / "workflow/profiles" / name / "profile.yaml"
    settings = yaml.safe_load(profile.read_text())
    missing = importlib.util.find_spec(f"snakemake_executor_plugin_{name}") is None
    if missing or name == "kubernetes":  # its plugin asks for a storage of one's own
        own = ("executor", "container-image", f"{name}-")
        kept = {k: v for k, v in settings.items() if not k.startswith(own)}
        profile.write_text(yaml.safe_dump(kept))
    return ["--workflow-profile", str(profile.parent.relative_to(checkout.root))], settings


@pytest.mark.parametrize("name", NAMES)
def test_a_dry_run_accepts_every_option(fresh, name):
    """Those of the plugin are tested only where it is installed."""
    options, settings = without_plugin(fresh, name)
    assert settings["executor"] == name
    assert settings["rerun-incomplete"] is True
    run = fresh.snakemake("-n", *options, cores=8)
    assert run.status == 0, run.text
    assert f"Using workflow specific profile workflow/profiles/{name}" in run.text
    runtime = settings["default-resources"]["runtime"]
    tables = run.text.partition("rule tables_tiny:")[2].partition("\nrule ")[0]
    assert re.search(rf"resources: .*runtime={runtime}\b", tables)


def test_every_profile_is_tested_and_has_no_program():
    files = [path.relative_to(PROFILES).as_posix() for path in PROFILES.rglob("*.*")]
    assert sorted(files) == sorted(f"{name}/profile.yaml" for name in NAMES)


@pytest.mark.fault("configuration", "a misspelt option in a profile")
@pytest.mark.parametrize("option", ["executer", "retry"])
def test_a_misspelt_option_is_refused(fresh, option):
    """A dry run detects a wrong option, so the tests above can fail."""
    (fresh.root / "workflow/profiles/slurm/profile.yaml").write_text(f"{option}: 1\n")
    assert fresh.snakemake("-n", "--workflow-profile", "workflow/profiles/slurm").status != 0


@pytest.mark.parametrize("name", NAMES)
def test_what_a_profile_shows_as_a_comment_works(fresh, name):
    """Cells share jobs, and one algorithm asks for more."""
    profile = fresh.root / "workflow/profiles" / name / "profile.yaml"
    text = profile.read_text()
    setting = r"^# ((?:set-resources|groups|group-components):| +\w+:(?: \w+)?)$"
    shown = re.sub(setting, r"\1", text, flags=re.MULTILINE)
    profile.write_text(shown.replace("run_ssi", "run_power_gd").replace("run_fedrep", "run_wk2023"))
    options, settings = without_plugin(fresh, name)
    assert settings["groups"] == {"run_power_gd": "cells"}
    cells = [f"{HISTORIES}/{cell}.h5" for cell in (PLAIN, MOMENTUM)]
    run = fresh.snakemake("-n", *cells, *options)
    assert run.status == 0, run.text
    blocks = re.split(r"^\[.*?\] ?", run.text, flags=re.MULTILINE)
    groups = [block for block in blocks if block.startswith("Group job")]
    assert any(PLAIN in group and MOMENTUM in group for group in groups), run.text
    asked = settings["set-resources"]["run_wk2023"]
    run = fresh.snakemake("-n", f"{HISTORIES}/first/wk2023/easy-default.h5", *options)
    resources = re.search(r"rule run_wk2023:\n(?:    .*\n)*    resources: (.*)", run.text)[1]
    for key, value in asked.items():
        assert f"{key}={value}" in resources

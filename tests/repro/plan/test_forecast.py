"""What a run will take: of the cells that have no history, on a machine of another speed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fedcore.repro.plan import forecast, kept_cells
from fedcore.repro.plan.kept_cells import Kept, KeptRun
from fedcore.repro.plan.plan import load_plan

PAPER = """
title: A study
citation: Nobody
judged: false
problems:
  easy:
    label: easy
    generator: low_rank
    params: {n_clients: 3, samples: 8, n_features: 6, rank: 2}
    defaults: {n_components: 2}
experiments:
  one:
    reproduces: nothing
    problems: [easy]
    repeats: 2
    metrics: [objective]
    runs: [{algorithm: power_iteration}, {algorithm: ssi}, {algorithm: one_shot}]
"""
NAMES = [f"study/one/{method}/easy-default" for method in ("power_iteration", "ssi", "one_shot")]


@pytest.fixture
def plan(tmp_path):
    (tmp_path / "study").mkdir()
    (tmp_path / "study/experiments.yaml").write_text(PAPER)
    paths = {name: f"{tmp_path}/{name}" for name in ("results", "clients")}
    return load_plan({"papers": [f"{tmp_path}/study"], "paths": paths})


def keep(folder: Path, seconds, probe, problems=()):
    cells = {
        name: Kept(name, "", "", "", cpu, 1500.0, {})
        for name, cpu in zip(NAMES, seconds, strict=False)
    }
    run = KeptRun("", "", {}, {}, 0, probe, dict(problems), {}, cells)
    kept_cells.write(folder / kept_cells.FOLDER / "study.jsonl", run)
    assert kept_cells.read(folder / kept_cells.FOLDER / "study.jsonl") == run


def hours(said):
    return float(re.search(r"([\d.]+) hours", said)[1])


def test_hours_scale_with_the_machine_and_count_what_is_to_be_made(plan, tmp_path):
    keep(tmp_path, [7200.0, 7200.0, 36000.0], probe=2.0)

    def said(cores, probe):
        return forecast.sentence(plan, cores, probe, tmp_path)

    assert hours(said(1, 2.0)) == 14 and hours(said(1, 4.0)) == 28
    assert hours(said(4, 2.0)) == 10  # the longest cell
    assert "3.0 GB" in said(2, 2.0)
    made = tmp_path / "results/histories" / f"{NAMES[2]}.h5"
    made.parent.mkdir(parents=True)
    made.touch()
    assert hours(said(1, 2.0)) == 4 and said(1, 2.0).startswith("2 cells")


def test_data_count_until_they_are_there(plan, tmp_path):
    keep(tmp_path, [3600.0, 3600.0, 3600.0], probe=1.0, problems={"easy": 7200.0})
    assert hours(forecast.sentence(plan, 1, 2.0, tmp_path)) == 10
    made = tmp_path / "clients/study/easy.h5"
    made.parent.mkdir(parents=True)
    made.touch()
    assert hours(forecast.sentence(plan, 1, 2.0, tmp_path)) == 6


def test_cells_that_nobody_has_measured_are_told(plan, tmp_path):
    keep(tmp_path, [3600.0], probe=1.0)
    said = forecast.sentence(plan, 1, 1.0, tmp_path)
    assert hours(said) == 1 and "2 cells of them never measured" in said

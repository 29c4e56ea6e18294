"""A stranger makes cells of a kept run again: what agrees, and what was altered, is noticed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

import blas_kernels
from fedcore.files.strict_yaml import read_yaml
from fedcore.history import History
from fedcore.repro.commands.certify import begin_folder
from fedcore.repro.plan import kept_cells
from fedcore.repro.plan.plan import load_plan

CELL = "tiny/first/power_iteration/easy-default"
OTHER = "tiny/first/wk2023/easy-default"
WORDS = ["--configfile", "tiny.yaml", "--kept", "kept/records"]


def keep(checkout):
    found = checkout.python("tools/kept_records.py", *WORDS, "tiny")
    assert found.returncode == 0, found.stderr


def certified(checkout, out, *options, kernel=None):
    """Run the command; return its status, what it said, and codecheck.yml."""
    call = ["-m", "fedcore", "certify", "tiny", "--out", out, "--seed", "1", *WORDS, *options]
    environment = checkout.environment
    if kernel is not None:
        environment |= {"OPENBLAS_CORETYPE": kernel}
    done = subprocess.run(
        [sys.executable, *call], cwd=checkout.root, env=environment, text=True, timeout=1200,
        stdin=subprocess.DEVNULL, capture_output=True,
    )  # fmt: skip
    file = checkout.root / out / "codecheck.yml"
    return done, yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}


def alter(checkout, cell, column, factor):
    """Alter a column of a history by hand, as someone would who wants another result."""
    file = checkout.root / f"results/tiny/histories/{cell}.h5"
    history = History.load(file)
    history.columns[column] = history.columns[column] * factor
    history.save(file, force=True)


def words(check):
    return {entry["file"]: entry["comment"] for entry in check["manifest"]}


@pytest.mark.slow
def test_all_cells_agree_bit_by_bit_and_an_altered_history_is_noticed(done):
    keep(done)
    found, check = certified(done, "first")
    assert found.returncode == 0, found.stderr
    assert len(words(check)) == 6 and set(words(check).values()) == {"same bytes"}
    assert check["shares"][0]["items"] == "1 of 1" and check["inputs"]
    assert not done.planned()  # the run itself is as it was
    alter(done, CELL, "objective", 1 + 1e-12)  # beyond all digits that are shown
    keep(done)
    record = done.root / "kept/records/tiny.jsonl"
    run = kept_cells.read(record)
    kept = run.cells[OTHER]
    column = kept.ends["objective"]
    ends = kept.ends | {"objective": column._replace(median=column.median * 1.00001)}
    kept_cells.write(record, replace(run, cells=run.cells | {OTHER: replace(kept, ends=ends)}))
    # What has other settings than in the kept run is not compared.
    done.edit("papers/tiny/experiments.yaml", "repeats: 3", "repeats: 4")
    found, check = certified(done, "first", "--minutes", "0.5")
    assert {Path(name).parts[3] for name in words(check)} == {"first"}
    assert found.returncode == 1 and found.stderr.splitlines()[-1].startswith("Error: ")
    assert {row["cell"] for row in check["disagreeing"]} >= {OTHER}
    assert {name for name, word in words(check).items() if word == "differs"} == {
        f"results/histories/{cell}.h5" for cell in (CELL, OTHER)
    }
    page = (done.root / "first/certificate.md").read_text(encoding="utf-8")
    assert f"| {CELL} | differs |" in page


@pytest.mark.slow
def test_under_another_kernel_ranges_agree_and_an_altered_history_is_noticed(done):
    kernel = next(blas_kernels.others(), None)
    if kernel is None:
        pytest.skip("this machine has one kernel")
    keep(done)
    found, check = certified(done, "other", kernel=kernel.name)
    assert found.returncode == 0, found.stderr
    assert "differs" not in words(check).values()
    refused, _ = certified(done, "other")  # its own kernel does not go on there
    assert refused.returncode == 1 and "another machine or kernel" in refused.stderr
    alter(done, CELL, "objective", 100)  # beyond the range of its repeats
    keep(done)
    found, check = certified(done, "other", kernel=kernel.name)
    assert found.returncode == 1
    assert words(check)[f"results/histories/{CELL}.h5"] == "differs"


@pytest.mark.slow
def test_what_took_longest_in_the_kept_run_starts_first(done):
    keep(done)
    file = done.root / "kept/records/tiny.jsonl"
    run, last = kept_cells.read(file), "tiny/second/power_gd/other-momentum"
    assert all(cell.cpu > 0 for cell in run.cells.values())
    cells = run.cells | {last: replace(run.cells[last], cpu=99.0)}
    kept_cells.write(file, replace(run, cells=cells))
    histories = done.root / "results/tiny/histories"
    names = list(done.files("results/tiny/histories/**/*.h5"))
    for name in names:
        (done.root / name).unlink()
    done.run(*names)
    ended = sorted(histories.rglob("*.h5"), key=lambda history: history.stat().st_mtime_ns)
    assert ended[0] == histories / f"{last}.h5" and len(ended) == 6


def test_its_run_plans_no_other_papers(tmp_path):
    changes = {"cells": {"*": {"repeats": 1}}}
    config = {"papers": ["dppower", "fedpower"]}
    both = load_plan(config | {"overrides": dict.fromkeys(config["papers"], changes)})
    begin_folder(tmp_path, {}, both, ["dppower"])
    made = load_plan(read_yaml(tmp_path / "config/config.yaml"))
    assert list(made.papers) == list(made.config["overrides"]) == ["dppower"]
    assert made.cells.keys() == {cell.path for cell in both.cells_of("dppower")}

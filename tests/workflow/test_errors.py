"""A user's error ends in one sentence with the place, the mistake and the nearest correct name."""

from __future__ import annotations

import gzip
import re

import numpy as np
import pytest

from refused import is_a_line

PAPER = "papers/tiny/experiments.yaml"
CLAIMS = "papers/tiny/claims.yaml"


def sentence(text):
    """What Snakemake prints between the place of the error and the traceback through the rules."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if re.match(r"\w+Error in file", line))
    end = next(i for i, line in enumerate(lines[start:], start) if line.startswith("  File "))
    assert all(line.startswith("  File ") for line in lines[end:])
    return " ".join(lines[start + 1 : end])


# One mistake of each file (tests/repro/config has them all): file, text, change, what is told.
CONFIGURATION = {
    # Paths become patterns of Snakemake, where braces stand for parts of a name.
    "braces": ("tiny.yaml", "results/tiny", "results/{}", "paths.results", "'results/{}'"),
    "parameter": (PAPER, "n_features: 5", "n_feature: 5",
                  f"{PAPER}, problem other", "'n_feature'", "'n_features'"),
}  # fmt: skip


def test_a_wrong_item_is_found_before_anything_runs(fresh):
    fresh.edit(CLAIMS, "headline:", "headlin:")
    run = fresh.snakemake()
    assert run.status == 1 and "Traceback" not in run.text
    (said,) = [line for line in run.text.splitlines() if "headlin'" in line]
    is_a_line(said)
    assert f"{CLAIMS}, table1-power" in said and "'headline'" in said
    assert not (fresh.root / "data/clients").exists()


BROKEN = {
    "report": ("papers/tiny/tables.py", b"TABLES = {\n", "line 1: '{' was never closed"),
    "notebook": ("notebooks/tiny.ipynb", b"[]", " is not a notebook (TypeError: "),
    "configuration": ("config/config.yaml", b"# caf\xe9\n", " is not valid YAML: 'utf-8' codec "),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_file_is_named(fresh, broken):
    path, content, reason = BROKEN[broken]
    (fresh.root / path).write_bytes(content)
    run = fresh.snakemake("-n")
    assert run.status == 1
    assert path in sentence(run.text) and reason in sentence(run.text)
    assert "Traceback" not in run.text


def test_a_figure_that_the_notebook_does_not_save(done):
    done.edit(PAPER, "figures:\n", "figures:\n  lost: Nobody draws it\n")
    run = done.snakemake()
    assert run.status == 1 and "Traceback" not in run.text
    assert "notebook_tiny" in run.text and "results/tiny/figures/tiny/lost.png" in run.text


@pytest.mark.parametrize("mistake", CONFIGURATION)
def test_wrong_configuration(fresh, mistake):
    path, old, new, *names = CONFIGURATION[mistake]
    fresh.edit(path, old, new)
    run = fresh.snakemake("-n")
    assert run.status == 1 and "Traceback" not in run.text
    said = sentence(run.text)
    is_a_line(said)
    assert [name for name in names if name not in said] == []


def failed(run, checkout, log):
    """The one sentence of a job that failed, the same on the terminal and in the job's log."""
    assert run.status == 1
    assert "Traceback" not in run.text
    said = {line for line in run.text.splitlines() if line.startswith("Error: ")}
    assert len(said) == 1
    message = said.pop()
    is_a_line(message)
    written = (checkout.root / "results/tiny/logs" / log).read_text()
    assert written.splitlines()[-1] == message
    return message


def target(cell):
    return f"results/tiny/histories/tiny/{cell}.h5"


def test_rank_above_the_data(fresh):
    defaults = "rank: 3}\n    defaults: {n_components: %d}"
    fresh.edit(PAPER, defaults % 2, defaults % 6)
    run = fresh.snakemake(target("second/power_gd/other-plain"))
    assert "n_components = 6" in failed(run, fresh, "run/tiny/second/power_gd/other-plain.log")
    assert not (fresh.root / target("second/power_gd/other-plain")).exists()


def test_raw_file_with_another_checksum(fresh):
    path = fresh.root / "data/raw/little/images.gz"
    path.write_bytes(path.read_bytes() + b"\0")
    run = fresh.snakemake("data/clients/tiny/tiny/little.h5")
    assert "data/raw/little/images.gz" in failed(run, fresh, "fetch/little.log")
    assert not (fresh.root / "data/raw/little/fetched.json").exists()


def test_raw_file_cut_off(fresh, add_data_set):
    """A file that was cut off before its checksum was taken."""
    whole = gzip.compress(np.random.default_rng(1).bytes(4000))
    add_data_set(fresh, "torn", {"images.gz": whole[:2000], "labels.gz": whole})
    fresh.edit(PAPER, "dataset: little", "dataset: torn")
    run = fresh.snakemake("data/clients/tiny/tiny/little.h5")
    assert "data/raw/torn/images.gz" in failed(run, fresh, "problem/tiny-little.log")


def test_a_history_that_is_cut_off_is_not_shown_and_stops_the_tables(done):
    name = target("first/wk2023/easy-default")
    path = done.root / name
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    shown = done.python("-m", "fedcore", "show", name)
    assert (shown.returncode, shown.stdout) == (1, "")
    is_a_line(shown.stderr.removesuffix("\n"))
    assert name in shown.stderr
    assert name in failed(done.snakemake(), done, "tables/tiny.log")  # newer than the tables
    assert not (done.root / "results/tiny/tables/tiny/ends.tsv").exists()


def test_data_that_cannot_be_had(first_run):
    """One warning; its cells are left out, all others run, and its printed item is 'not run'."""
    checkout, run = first_run
    warnings = [line for line in run.text.splitlines() if line.startswith("Not run: ")]
    assert len(warnings) == 1
    (warning,) = warnings
    for part in ("tiny/faces", "'img_align_celeba.zip'", "data/raw/celeba", "https://"):
        assert part in warning
    assert "faces" not in run.text.replace(warning, "")
    assert run.status == 0
    verdict = (checkout.root / "results/tiny/verdicts/tiny.md").read_text()
    assert "not run" in verdict
    assert "left out what it needs: faces" in verdict

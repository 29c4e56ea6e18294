"""Kept histories come back into a checkout whose code and configuration would make them again."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedcore.history import History
from fedcore.repro.plan import kept_cells

ROOT = Path(__file__).parents[2]
SCRIPT = "tools/kept_histories.py"
WORDS = ["--kept", "kept", "--configfile", "tiny.yaml"]
CELL = "tiny/first/wk2023/easy-default"


def kept_only(checkout):
    """Keep the histories of a run, and forget the run."""
    before = {
        path: History.load(checkout.root / path)
        for path in checkout.files("results/tiny/histories/**/*.h5")
    }
    keep = checkout.python(SCRIPT, *WORDS, "keep", "tiny")
    assert keep.stdout == f"{len(before)} histories kept\n", keep.stderr
    for folder in ("results", "data/clients", ".snakemake"):
        shutil.rmtree(checkout.root / folder)
    return before


def restored(checkout, *options):
    found = checkout.python(SCRIPT, *WORDS, "restore", *options)
    assert found.returncode == 0, found.stderr
    assert "To run: " not in found.stderr and "Run again" not in found.stderr  # nothing does
    return found.stdout


@pytest.fixture
def ended(done):
    return done, kept_only(done)


def test_restored_histories_run_again_only_when_their_code_changes(ended):
    done, before = ended
    done.append("tiny.yaml", "\nseed: 5\n")  # histories of another configuration stay out
    said = restored(done)
    assert "tiny/second/power_gd/other-plain: the configuration has changed" in said
    assert "0 histories restored" in said
    assert not done.files("results/tiny/histories/**/*.h5")
    done.edit("tiny.yaml", "\nseed: 5\n", "")
    assert "6 histories restored" in restored(done)
    for path, history in before.items():
        found = History.load(done.root / path)
        assert not found.final and not found.iterates
        assert found.about.pop("restored") and found.about.pop("iterates")["policy"] == "not kept"
        assert found.about.items() <= history.about.items()
        for name, column in history.columns.items():
            np.testing.assert_array_equal(found[name], column)
    assert (done.root / f"results/tiny/seconds/{CELL}.tsv").is_file()
    assert done.cells() == set()
    keep = done.python(SCRIPT, *WORDS, "keep", "tiny")  # they are kept already
    assert keep.stdout == "0 histories kept\n", keep.stderr
    done.append("fedcore/algorithms/wk2023.py", "\nEDITED = True\n")
    assert done.cells() == {"first/wk2023/easy-default", "first/wk2023/little-default"}


def test_no_data_are_made_for_restored_histories_and_a_lost_one_is_made_again(ended):
    done, _ = ended
    restored(done)
    (done.root / "results/tiny/restored.json").unlink()  # to restore again mends it
    assert "6 histories restored" in restored(done)
    assert not done.files("data/clients/**/*.h5")
    assert not [name for name, rule in done.planned().items() if rule == "problem"]
    done.run()
    assert not done.files("data/clients/**/*.h5")
    # The data of one that is made are newer than the others on the same problem, which stay.
    lost = f"results/tiny/histories/{CELL}.h5"
    others = done.files("results/tiny/histories/**/*.h5")
    del others[lost]
    (done.root / lost).unlink()
    assert done.cells() == {CELL.removeprefix("tiny/")}
    done.run()
    found = done.files("results/tiny/histories/**/*.h5")
    del found[lost]
    assert found == others
    assert "restored" not in History.load(done.root / lost).about
    assert list(done.files("data/clients/**/*.h5")) == ["data/clients/tiny/tiny/easy.h5"]
    assert done.planned() == {}


def recorded(checkout):
    """Record the results; return the checksums of the recorded cells."""
    found = checkout.python("tools/kept_records.py", *WORDS[2:], "--kept", "records", "tiny")
    assert found.returncode == 0, found.stderr
    cells = kept_cells.read(checkout.root / "records/tiny.jsonl").cells
    return {path: kept.sha256 for path, kept in cells.items()}


def test_a_record_of_other_code_and_other_data_comes_back_and_says_so(done):
    first = recorded(done)
    before = kept_only(done)
    done.append("fedcore/algorithms/wk2023.py", "\nEDITED = True\n")
    file = done.root / "kept" / f"{CELL}.h5"
    history = History.load(file)
    history.about["problem"] |= {"sha256": "0" * 64, "note": "Three images were approximations."}
    history.save(file, force=True)
    assert "6 histories restored" in restored(done)
    path = f"results/tiny/histories/{CELL}.h5"
    found = History.load(done.root / path)
    assert found.about["code"] == before[path].about["code"] and found.about["restored"]
    assert done.cells() == set()
    done.snakemake()
    page = (done.root / "results/tiny/report/tiny/index.html").read_text(encoding="utf-8")
    assert found.about["commit"] in page and "Three images were approximations." in page
    # What was recorded of the run itself stands with its machine, but not that of other code.
    record = done.root / "records/tiny.jsonl"
    run = kept_cells.read(record)
    kept_cells.write(record, replace(run, machine=run.machine | {"BLAS": "another"}))
    assert len(first) == 6
    assert recorded(done) == {path: sha for path, sha in first.items() if "wk2023" not in path}
    assert kept_cells.read(record).machine["BLAS"] == f"another and {run.machine['BLAS']}"


def test_the_histories_that_the_repository_keeps_are_read():
    """Earlier versions wrote them, on a machine that is not here."""
    files = sorted((ROOT / "kept" / "histories").rglob("*.h5"))
    assert files and all(History.load(file).repeats for file in files)


def test_records_of_experiments_that_a_run_leaves_out_stand(done):
    first = recorded(done)
    done.append("tiny.yaml", "\noverrides: {tiny: {cells: {'second/*': false}}}\n")
    done.snakemake()
    assert recorded(done) == first

"""More repeats of a cell: those that have ended are not computed again, and all bytes are equal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from cells import cell
from fedcore.experiments import checkpoint, repeats
from fedcore.experiments.repeats import run_cell
from fedcore.problems import storage
from fedcore.problems.problem import Problem

CELLS = {
    "shared": ("ssi", {"rounds": 6}, {"share_products": True}),
    "client iterates": (
        "faps", {"rounds": 4, "inner": "residual"},
        {"share_products": True, "client_iterates": True, "iterates": "all"},
    ),
    "twins": ("faps", {"rounds": 4}, {"share_products": True, "twin": "ten_roundings"}),
    "stops": (
        "local_power", {"rounds": 30},
        {"share_products": True, "stop": {"kkt_residual": {"at_most": 1e-2}}},
    ),
    "one by one": ("power_gd", {"local_steps": 5, "samples": 3}, {"iterates": "log"}),
    "centred": ("block_krylov", {"rounds": 3}, {"center": True}),
    "noise": ("fedpower", {"iterations": 4, "clip": True}, {}),
    "tuned": (
        "local_power", {"rounds": 3},
        {"tune": {"by": "kkt_residual", "every": 1, "repeats": 1, "over": {"local_steps": [1, 4]}}},
    ),
}  # fmt: skip


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "LONG_REPEAT", -1.0)
    rng = np.random.default_rng(0)
    clients = [rng.standard_normal((n, 12)) * 0.8 ** np.arange(12) for n in (30, 9, 20)]
    storage.save(Problem("x", clients), tmp_path / "problem.h5")
    return tmp_path


def spec(name, count, **changes):
    algorithm, params, more = CELLS[name]
    given = {"metrics": ["kkt_residual"], **more, **changes}
    return cell(algorithm, {"n_components": 3, **params}, repeats=count, **given)


def made(folder, given, name):
    run_cell(given, folder / "problem.h5", folder / "cell.h5", folder / "cell.tsv",
             checkpoints=folder / name / "x")  # fmt: skip
    return (folder / "cell.h5").read_bytes()


@contextmanager
def counted() -> Iterator[set[int]]:
    """Give the repeats that run inside."""
    plain, ran = repeats._Repeats._repeat, set()

    def repeat(self, number):
        ran.add(number)
        return plain(self, number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeats._Repeats, "_repeat", repeat)
        yield ran


@pytest.mark.parametrize("name", CELLS)
def test_more_repeats_compute_the_new_ones_and_give_the_bytes_of_all_at_once(files, name):
    for count, new in ((2, {0, 1}), (7, set(range(2, 7)))):
        with counted() as ran:
            extended = made(files, spec(name, count), "kept")
        assert ran == new
    assert made(files, spec(name, 7), "fresh") == extended
    with counted() as ran:  # fewer, and again all
        made(files, spec(name, 3), "kept")
        assert made(files, spec(name, 7), "kept") == extended
    assert not ran


@pytest.mark.parametrize("change", ["code", "data", "damage", "seconds"])
def test_a_repeat_of_another_run_or_a_damaged_one_is_computed_again(files, change):
    made(files, spec("shared", 2, code="a"), "kept")
    kept = files / "kept/x.0.finished.h5"
    if change == "data":
        clients = [np.eye(12)[:9] + 0.1, np.eye(12)[3:]]
        storage.save(Problem("x", clients), files / "problem.h5")
    elif change == "damage":
        kept.write_bytes(kept.read_bytes()[:-100])
    elif change == "seconds":
        kept.with_suffix(".tsv").unlink()
    given = spec("shared", 2, code="b" if change == "code" else "a")
    with counted() as ran:
        found = made(files, given, "kept")
    assert ran == ({0, 1} if change in ("code", "data") else {0})
    assert found == made(files, given, "fresh")


def test_a_killed_cell_keeps_its_finished_repeats(files, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        plain = repeats.trial

        def trial(cell, draws, params, repeat, *args, **options):
            if repeat == 5:
                raise KeyboardInterrupt
            return plain(cell, draws, params, repeat, *args, **options)

        patch.setattr(repeats, "trial", trial)
        made(files, spec("stops", 7), "kept")
    with counted() as ran:
        made(files, spec("stops", 7), "kept")
    assert ran == {5, 6}


def test_what_is_short_or_secret_is_not_kept(files, monkeypatch):
    made(files, spec("noise", 1, simulate=False), "kept")
    monkeypatch.setattr(checkpoint, "LONG_REPEAT", 1e9)
    made(files, spec("shared", 1), "kept")
    assert not list(files.glob("kept/*"))

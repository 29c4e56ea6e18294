"""A run that is killed goes on from its checkpoint and ends with the bytes of one that was not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from contract.networks import CASES, PARAMS
from fedcore.experiments.cell import Cell
from fedcore.experiments.checkpoint import Checkpoint
from fedcore.experiments.repeats import run_cell
from fedcore.history import read_seconds
from fedcore.problems import storage
from fedcore.problems.problem import Problem
from fedcore.recorder import Recorder
from fedcore.testing.samples import held_out, images

pytest.importorskip("torch", reason="networks need PyTorch, the extra deep")
ROUNDS = 6


class Killed(BaseException):
    """What ends the run in the middle."""


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A problem on disk; checkpoints are written after every round."""
    often = partial(Checkpoint, every=0.0)
    monkeypatch.setattr("fedcore.experiments.repeats.Checkpoint", often)
    storage.save(Problem("p", images(), held_out=held_out()), tmp_path / "problem.h5")
    return tmp_path


def cell(algorithm, code="", **changes):
    params = {**PARAMS, "rounds": ROUNDS, "participation": 0.5, **changes}
    given = {"params": params, "metrics": ["test_accuracy"], "repeats": 2, "iterates": "none"}
    return Cell("p", "e", algorithm, "p-x", "p", seed=3, code=code, **given)


def made(folder, spec, name):
    paths = folder / "problem.h5", folder / f"{name}.h5", folder / f"{name}.tsv"
    run_cell(spec, *paths, checkpoints=folder / "checkpoints" / "x")
    return paths[1].read_bytes()


@contextmanager
def killed_after(records: int) -> Iterator[None]:
    """End what runs inside at this number of records, in all repeats together."""
    plain, count = Recorder.__call__, iter(range(records))

    def call(self, *args, **shown):
        if next(count, None) is None:
            raise Killed
        return plain(self, *args, **shown)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Recorder, "__call__", call)
        yield


@pytest.mark.parametrize(  # in the first or the second repeat
    ("algorithm", "records"),
    [*((name, 4) for name in sorted(CASES)), ("fedrep", 1), ("fedrep", ROUNDS + 3)],
)
def test_a_killed_run_ends_with_the_same_bytes(files, capsys, algorithm, records):
    tuned = {"fine_tune": 2} if algorithm in ("fedavg", "scaffold") else {}
    # Of six rounds with one of four clients each, some leave clients without a head of their own.
    heads = {"first_head": "averaged", "participation": 0.25} if algorithm == "fedper" else {}
    spec = cell(algorithm, **tuned, **heads)
    whole = made(files, spec, "whole")
    with killed_after(records):
        made(files, spec, "killed")
    assert not (files / "killed.h5").exists()
    capsys.readouterr()
    assert made(files, spec, "killed") == whole
    assert ("Goes on after round" in capsys.readouterr().err) == (records > 1)
    assert not list((files / "checkpoints").iterdir())
    seconds = read_seconds(files / "killed.tsv")
    assert seconds.shape == (2, ROUNDS + 1 + bool(tuned))
    assert (seconds[:, 1:] >= seconds[:, :-1]).all()


@pytest.mark.parametrize("change", ["params", "code", "data", "damage"])
def test_a_checkpoint_that_is_damaged_or_of_another_run_is_passed_over(files, capsys, change):
    with killed_after(4):
        made(files, cell("fedrep", code="a"), "x")
    changed = {"params": {"rate": 0.3}, "code": {"code": "b"}}.get(change, {})
    spec = cell("fedrep", **{"code": "a"} | changed)
    if change == "data":
        other = Problem("p", images(seed=9), held_out=held_out())
        storage.save(other, files / "problem.h5")
    elif change == "damage":
        (path,) = (files / "checkpoints").iterdir()
        content = bytearray(path.read_bytes())
        content[-100] ^= 1
        path.write_bytes(content)
    found = made(files, spec, "x")
    assert ("damaged" if change == "damage" else "of another run") in capsys.readouterr().err
    assert found == made(files, spec, "y")


def test_a_run_does_not_go_on_from_what_another_device_has_made(files, monkeypatch, capsys):
    """Devices differ by rounding: the history would be of neither."""
    spec = cell("fedavg")
    monkeypatch.setenv("FEDCORE_DEVICE", "together")
    with killed_after(3):
        made(files, spec, "x")
    for device, says in (("cpu:0", "of another run"), ("together", "Goes on after round")):
        (kept,) = (files / "checkpoints").glob("*.0.h5")
        before = kept.read_bytes()
        monkeypatch.setenv("FEDCORE_DEVICE", device)
        with killed_after(1):
            made(files, spec, "x")
        assert says in "".join(capsys.readouterr())
        kept.write_bytes(before)

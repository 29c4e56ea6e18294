"""A run that is killed goes on from its checkpoint and ends with the bytes of one that was not."""

from __future__ import annotations

import importlib.util

import pytest
from contract.networks import CASES, PARAMS

from fedcore.experiments import checkpoint
from fedcore.experiments.cell import run_cell
from fedcore.experiments.plan import Cell
from fedcore.history import History, read_seconds
from fedcore.problems import storage
from fedcore.problems.problem import Problem
from fedcore.recorder import Recorder
from fedcore.testing.samples import held_out, images

# A mark and not `importorskip`, so that docs/faults.py finds these tests everywhere.
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="networks need PyTorch, the extra deep",
)
ROUNDS = 6


class Killed(BaseException):
    """What ends the run in the middle."""


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A problem on disk; checkpoints are written after every round."""
    monkeypatch.setattr(checkpoint.Checkpoint.__init__, "__defaults__", (0.0,))
    storage.save(Problem("p", images(), held_out=held_out()), tmp_path / "problem.h5")
    return tmp_path


def cell(algorithm, **changes):
    params = {**PARAMS, "rounds": ROUNDS, "participation": 0.5, **changes}
    given = {"params": params, "metrics": ["test_accuracy"], "repeats": 2, "iterates": "none"}
    return Cell("p", "e", algorithm, "p-x", "p", seed=3, **given).spec()


def made(folder, spec, name, **options):
    paths = folder / "problem.h5", folder / f"{name}.h5", folder / f"{name}.tsv"
    run_cell(spec, *paths, checkpoints=folder / "checkpoints" / "x", **options)
    return paths[1].read_bytes()


def killed_after(monkeypatch, records):
    """End the process's run at this number of records, in all repeats together."""
    plain, count = Recorder.__call__, [0]

    def call(self, *args, **shown):
        count[0] += 1
        if count[0] > records:
            raise Killed
        return plain(self, *args, **shown)

    monkeypatch.setattr(Recorder, "__call__", call)
    return lambda: monkeypatch.setattr(Recorder, "__call__", plain)


@pytest.mark.parametrize("records", [1, 4, ROUNDS + 3])  # in the first or the second repeat
@pytest.mark.parametrize("algorithm", sorted(CASES))
def test_a_killed_run_ends_with_the_same_bytes(files, monkeypatch, capsys, algorithm, records):
    tuned = {"fine_tune": 2} if algorithm in ("fedavg", "scaffold") else {}
    # Of six rounds with one of four clients each, some leave clients without a head of their own.
    heads = {"first_head": "averaged", "participation": 0.25} if algorithm == "fedper" else {}
    spec = cell(algorithm, **tuned, **heads)
    whole = made(files, spec, "whole")
    again = killed_after(monkeypatch, records)
    with pytest.raises(Killed):
        made(files, spec, "killed")
    assert not (files / "killed.h5").exists()
    again()
    capsys.readouterr()
    assert made(files, spec, "killed") == whole
    said = capsys.readouterr().err
    assert ("Goes on after round" in said) == (records > 1)
    each = ROUNDS + 1 + bool(tuned)

    assert not list((files / "checkpoints").iterdir())
    seconds = read_seconds(files / "killed.tsv")
    assert seconds.shape == (2, each) and (seconds[:, 1:] >= seconds[:, :-1]).all()


@pytest.mark.parametrize("change", ["params", "code", "data"])
def test_the_checkpoint_of_another_run_is_passed_over(files, monkeypatch, capsys, change):
    again = killed_after(monkeypatch, 4)
    with pytest.raises(Killed):
        made(files, cell("fedrep"), "x", code="a")
    again()
    spec, code = cell("fedrep"), "a"
    if change == "params":
        spec = cell("fedrep", rate=0.3)
    elif change == "code":
        code = "b"
    else:
        other = Problem("p", images(seed=9), held_out=held_out())
        storage.save(other, files / "problem.h5")
    found = made(files, spec, "x", code=code)
    assert "is of another run: this one begins anew" in capsys.readouterr().err
    assert found == made(files, spec, "y", code=code)


def test_a_damaged_checkpoint_is_passed_over(files, monkeypatch, capsys):
    again = killed_after(monkeypatch, 4)
    with pytest.raises(Killed):
        made(files, cell("ditto"), "x")
    again()
    (path,) = (files / "checkpoints").iterdir()
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)
    found = made(files, cell("ditto"), "x")
    assert "is damaged" in capsys.readouterr().err
    assert found == made(files, cell("ditto"), "y")
    assert History.load(files / "x.h5").repeats == 2


def test_a_run_does_not_go_on_from_what_another_device_has_made(files, monkeypatch, capsys):
    """Devices differ by rounding: the history would be of neither."""
    spec = cell("fedavg")
    monkeypatch.setenv("FEDCORE_DEVICE", "together")
    with monkeypatch.context() as dying:
        killed_after(dying, 3)
        with pytest.raises(Killed):
            made(files, spec, "x")
    for device, says in (("cpu:0", "is of another run"), ("together", "Goes on after round")):
        (kept,) = (files / "checkpoints").glob("*.0.h5")
        before = kept.read_bytes()
        monkeypatch.setenv("FEDCORE_DEVICE", device)
        with monkeypatch.context() as dying:
            killed_after(dying, 1)
            with pytest.raises(Killed):
                made(files, spec, "x")
        assert says in "".join(capsys.readouterr())
        kept.write_bytes(before)

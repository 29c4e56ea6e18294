"""A client that replies with nonsense: the run is marked, or refused with the client's number."""

from __future__ import annotations

import numpy as np
import pytest

from fedcore.experiments.cell import Cell
from fedcore.experiments.repeats import run_cell
from fedcore.history import History
from fedcore.problems import storage

SPEC = Cell(
    "paper", "experiment", "one_shot", "x", "p", {"n_components": 3}, 2, ["objective"],
    iterates="none", seed=0,
)  # fmt: skip


@pytest.fixture
def run(problem, tmp_path, redeclared):
    """Run a cell of power iteration whose second client replies, from round 2 on, as it likes."""
    storage.save(problem, tmp_path / "problem.h5")
    history = tmp_path / "history.h5"

    def call(wrong, *, last=lambda U: U):
        def method(federation, params, rng, record):
            U = np.linalg.qr(rng.standard_normal((federation.shape.n_features, 3)))[0]
            n_samples = len(problem.clients[1])
            record(0, basis=U)
            for k in range(1, 5):
                federation.broadcast(U)

                def product(data, state, message, k=k):
                    Y = data.T @ (data @ message)
                    return wrong(Y) if k > 1 and len(data) == n_samples else Y

                total = federation.sum(product)
                U = np.linalg.qr(total)[0] if np.isfinite(total).all() else total
                if record(k, basis=U):
                    break
            return {"basis": last(U)}

        redeclared("one_shot", run=method)
        run_cell(SPEC, tmp_path / "problem.h5", history, tmp_path / "seconds.tsv")
        return History.load(history)

    yield call
    # Whatever happened, the problem is whole, and no half file is left.
    storage.load(tmp_path / "problem.h5")
    assert not list(tmp_path.glob(".*"))


NUMBERS = {
    "NaN": lambda Y: Y * np.nan,
    "one NaN": lambda Y: np.where(np.arange(Y.size).reshape(Y.shape) == 4, np.nan, Y),
    "infinity": lambda Y: Y + np.inf,
    "overflow": lambda Y: np.multiply(Y, 1e308) * 1e308,
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", NUMBERS)
def test_what_is_not_finite_ends_the_run_and_marks_it(run, kind):
    history = run(NUMBERS[kind])
    assert list(history.last("iteration")) == [2, 2]
    assert list(history.last("diverged")) == [1, 1]
    assert np.isfinite(history["objective"][:, :2]).all()


@pytest.mark.parametrize("wrong", ["text", np.array([1, None], object)], ids=["text", "objects"])
def test_what_is_no_number_does_not_cross(run, tmp_path, wrong):
    with pytest.raises(TypeError):
        run(lambda Y: wrong)
    assert not (tmp_path / "history.h5").exists()


def test_a_last_result_that_is_not_finite_marks_the_run(run):
    history = run(lambda Y: Y, last=lambda U: U * np.nan)
    assert list(history.last("diverged")) == [1, 1]

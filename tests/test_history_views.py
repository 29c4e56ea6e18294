"""`fedcore.History`: its plot, its data frame, and one run as a history."""

from __future__ import annotations

import numpy as np
import pytest

import fedcore
from fedcore.errors import InputError


@pytest.fixture
def uneven():
    """Two repeats, of which the second ended early."""
    columns = {
        "iteration": np.array([[0, 1, 2], [0, 1, -1]]),
        "round": np.array([[0, 1, 2], [0, 1, -1]]),
        "objective": np.array([[4.0, 2.0, 1.0], [8.0, 2.0, np.nan]]),
    }
    problem = {"name": "p", "status": "synthetic"}
    return fedcore.History(columns, about={"algorithm": "ssi", "problem": problem})


def test_a_data_frame_has_a_row_for_every_record(uneven):
    pytest.importorskip("pandas")
    frame = uneven.to_frame()
    assert list(frame.columns) == ["repeat", "iteration", "round", "objective"]
    assert frame["repeat"].tolist() == [0, 0, 0, 1, 1]
    assert frame["objective"].tolist() == [4.0, 2.0, 1.0, 8.0, 2.0]
    assert frame["round"].dtype == np.int64
    assert frame.groupby("repeat")["objective"].last().tolist() == [1.0, 2.0]


def test_a_plot_draws_the_median_of_each_metric_and_is_saved_where_asked(uneven, tmp_path):
    figure = uneven.plot(tmp_path / "loss", against=["round"], metrics=["objective"])
    (ax,) = figure.axes
    (line,) = (line for line in ax.lines if line.get_label() == "ssi")
    np.testing.assert_array_equal(line.get_xydata(), [[0, 6], [1, 2], [2, 1]])
    assert ax.get_xlabel() == "communication rounds"
    assert sorted(file.name for file in tmp_path.glob("loss.p*")) == ["loss.pdf", "loss.png"]
    assert (
        uneven.plot(against="iteration", metrics="objective").axes[0].get_xlabel() == "iterations"
    )
    for options, name in (({"against": "rounds"}, "'round'"), ({"metrics": ["ob"]}, "'ob'")):
        with pytest.raises(InputError, match=name):
            uneven.plot(**options)


def test_a_result_becomes_a_history_of_one_repeat(clients):
    result = fedcore.run("analyze_gauss", clients, 2, clip=True, epsilon=0.5, delta=1e-5)
    found = fedcore.History.of(result, "analyze_gauss")
    assert found.repeats == 1 and found.released == result.released
    np.testing.assert_array_equal(found["objective"][0], result.history["objective"])
    labels = [ax.get_ylabel() for ax in found.plot().axes]
    assert labels and all(label.endswith("(not released)") for label in labels)

"""What is said of a history, as plain values and as text, against sums by hand."""

from __future__ import annotations

import numpy as np
import pytest

from fedcore.history import History
from fedcore.reports.description import describe
from fedcore.reports.terminal import one_run, side_by_side


@pytest.fixture
def two_draws():
    """Two repeats, each on a draw of its own; the second has ended early and diverged."""
    columns = {
        "iteration": np.array([[0, 1, 2], [0, 1, -1]]),
        "round": np.array([[0, 1, 2], [0, 1, -1]]),
        "diverged": np.array([[0, 0, 0], [0, 1, -1]]),
        "objective": np.array([[9.0, 5.0, 3.0], [20.0, 13.0, np.nan]]),
        "captured": np.array([[5.0, 6.0, 7.0], [5.0, 6.0, np.nan]]),
    }
    traffic = {f"{what}_{way}": columns["round"] * 8 for what in ("scalars", "bytes")
               for way in ("up", "down")}  # fmt: skip
    return History(
        columns | traffic,
        {"converged": np.array([1, 0]), "angle_estimate": np.array([1e-12, 1.0])},
        reference={"singular_values": np.array([[3.0, 2.0, 1.0], [4.0, 2.0, 2.0]])},
        about={"algorithm": "ssi", "params": {"n_components": 1}},
    )


def test_values_at_the_end_stand_beside_the_best_of_each_draw(two_draws):
    found = describe(two_draws)
    objective, captured = found["metrics"]["objective"], found["metrics"]["captured"]
    assert [objective[word] for word in ("median", "min", "max")] == [8.0, 3.0, 13.0]
    assert objective["at best"] == {"median": 3.25, "min": 2.5, "max": 4.0}
    assert captured["at best"] == {"median": 12.5, "min": 9.0, "max": 16.0}
    assert found["ledger"]["round"] == 1.5 and "seconds" not in found
    assert (found["converged"], found["undetermined"], found["diverged"]) == (1, 0, 1)


def test_the_text_is_written_from_the_description(two_draws):
    found = describe(two_draws)
    rows = [line.split() for line in one_run(found).splitlines()]
    at = next(i for i, row in enumerate(rows) if row[:1] == ["objective"])
    assert [float(word) for word in rows[at][1:4]] == [8.0, 3.0, 13.0]
    assert [float(word) for word in rows[at + 1][2:5]] == [3.25, 2.5, 4.0]
    other = describe(two_draws) | {"metrics": {}}
    rows = [line.split() for line in side_by_side({"a": found, "b": other}).splitlines()]
    table = {row[0]: row[1:] for row in rows if row}
    assert table["a"][:2] == ["6.5", "8"]
    assert table["b"][:2] == ["–", "–"] and table["at"] == ["best", "12.5", "3.25"]

"""Draws of cells: within the time, each kind first, by chance that a seed fixes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcore.repro.plan.draws import Cost, draw, together
from fedcore.repro.plan.kept_cells import DIFFERS, DIGITS, RANGE, Ends

pools = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=4),
    st.builds(
        Cost,
        st.tuples(st.just("p"), st.sampled_from("xyz")),
        st.floats(0.1, 100.0),
        st.dictionaries(st.sampled_from(["p/one", "p/two"]), st.just(3.0), max_size=2),
    ),
    min_size=1,
    max_size=20,
)


@given(pools, st.floats(1.0, 500.0), st.integers(0, 2**32))
def test_a_draw_fits_and_no_cell_is_left_out_that_would(pool, seconds, seed):
    found = draw(pool, seconds, seed)
    assert found == draw(pool, seconds, seed) and len(found) == len(set(found))
    spent = sum(together(pool, found))
    assert spent <= seconds * (1 + 1e-12)
    for cell in pool.keys() - set(found):
        assert sum(together(pool, [*found, cell])) > seconds - 1e-9
    whole = sum(together(pool, list(pool)))
    assert set(draw(pool, whole + 1e-6, seed)) == set(pool)


def test_each_kind_comes_first_and_cheap_cells_come_more_often():
    pool = {f"x{i}": Cost(("p", "x"), 1.0 + i, {}) for i in range(3)}
    pool |= {"y": Cost(("p", "y"), 5.0, {})}
    assert draw(pool, 6.0, 0) == ["x0", "y"]
    seconds = [sum("x1" in draw(pool, 9.0, seed) for seed in range(400))]
    # x1 costs 2 and x2 costs 3; one of them fits, and x1 comes first with probability 3/5.
    assert np.isclose(seconds[0] / 400, 0.6, atol=4 * np.sqrt(0.24 / 400))


@pytest.mark.parametrize(
    ("kept", "new", "word"),
    [
        (Ends(1.0, 0.5, 2.0, 3.0), 1.0009, DIGITS),
        (Ends(1.0, 0.5, 2.0, 3.0), 1.9, RANGE),
        (Ends(1.0, 0.5, 2.0, 3.0), 2.1, DIFFERS),
        (Ends(1e-16, 1e-16, 2e-16, 1.0), 7e-16, DIGITS),  # rounding of a column that began at 1
        (Ends(None, 0.5, 2.0, 3.0), None, DIGITS),  # both diverged
        (Ends(None, 0.5, 2.0, 3.0), 1.0, DIFFERS),
    ],
)
def test_ends_agree_to_three_digits_or_in_the_kept_range(kept, new, word):
    assert kept.agreement(Ends(new, new, new, 3.0)) == word

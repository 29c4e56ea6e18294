"""Draws of cells: within the time, each kind first, by chance that a seed fixes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcore.repro.plan.draws import draw, together
from fedcore.repro.plan.kept_cells import DIFFERS, DIGITS, RANGE, ZERO, Ends

pools = st.dictionaries(
    st.from_regex("p/e/[xyz]/[a-f]{1,4}", fullmatch=True),
    st.tuples(
        st.floats(0.1, 100.0),
        st.dictionaries(st.sampled_from(["p/one", "p/two"]), st.just(3.0), max_size=2),
    ),
    min_size=1,
    max_size=20,
).map(lambda cells: {cell: {cell: s, **data} for cell, (s, data) in cells.items()})


@given(pools, st.floats(1.0, 500.0), st.integers(0, 2**32))
def test_a_draw_fits_and_no_cell_is_left_out_that_would(pool, seconds, seed):
    found = draw(pool, seconds, seed)
    assert found == draw(pool, seconds, seed) and len(found) == len(set(found))
    assert together(pool, found) <= seconds * (1 + 1e-12)
    for cell in pool.keys() - set(found):
        assert together(pool, [*found, cell]) > seconds - 1e-9
    whole = together(pool, list(pool))
    assert set(draw(pool, whole + 1e-6, seed)) == set(pool)


def test_data_of_several_cells_are_made_once():
    pool = {f"p/e/x/{name}": {f"p/e/x/{name}": 2.0, "p/one": 3.0} for name in "ab"}
    assert together(pool, list(pool)) == 7.0 and len(draw(pool, 7.0, 0)) == 2


def test_each_kind_comes_first_and_cheap_cells_come_more_often():
    seconds = {f"p/e/x/{i}": 1.0 + i for i in range(3)} | {"p/e/y/0": 5.0}
    pool = {cell: {cell: s} for cell, s in seconds.items()}
    assert draw(pool, 6.0, 0) == ["p/e/x/0", "p/e/y/0"]
    drawn = sum("p/e/x/1" in draw(pool, 9.0, seed) for seed in range(400))
    # x/1 costs 2 and x/2 costs 3; one of them fits, and x/1 comes first with probability 3/5.
    assert np.isclose(drawn / 400, 0.6, atol=4 * np.sqrt(0.24 / 400))


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


def test_a_sine_of_zero_is_rounding_and_a_loss_is_not():
    kept, here = (Ends(x, x, x, x) for x in (4.8e-16, 9.4e-16))
    assert kept.agreement(here) == DIFFERS and kept.agreement(here, ZERO) == DIGITS
    assert kept.agreement(Ends(1e-12, 1e-12, 1e-12, 1e-12), ZERO) == DIFFERS

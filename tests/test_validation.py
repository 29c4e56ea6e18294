from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from fedcore import validation
from fedcore.errors import InputError


def refused(check, *bounds, value):
    with pytest.raises(InputError) as caught:
        check(*bounds, knob=value)
    message = str(caught.value)
    assert message.startswith("knob ") and "\n" not in message
    return message


NO_NUMBERS = [True, False, np.True_, math.nan, math.inf, -math.inf, "1", None, 1j, [1.0]]


@pytest.mark.parametrize("value", [*NO_NUMBERS, 0, -0.0, -1, np.float32(-2)])
def test_what_is_not_positive_is_refused(value):
    assert f"above 0, got {value!r}" in refused(validation.require_positive, value=value)


@pytest.mark.parametrize("value", [*NO_NUMBERS, -1, -1e-300])
def test_what_is_negative_is_refused(value):
    assert f"at least 0, got {value!r}" in refused(validation.require_non_negative, value=value)


@pytest.mark.parametrize("value", [1, 1e-300, np.float32(2), np.int8(3), Fraction(1, 3)])
def test_numbers_of_every_kind_pass(value):
    validation.require_positive(knob=value, other=value)
    validation.require_non_negative(knob=value, other=value, zero=0, floating=0.0)


@pytest.mark.parametrize("value", [True, np.True_, 1.0, "2", None, 1, -3, math.nan])
def test_what_is_no_whole_number_of_at_least_two_is_refused(value):
    assert "at least 2" in refused(validation.require_at_least, 2, value=value)
    validation.require_at_least(2, knob=2, other=np.int64(5))


@pytest.mark.parametrize("value", [0, 1, "false", None, 1.0])
def test_only_true_and_false_are_flags(value):
    assert "must be true or false" in refused(validation.require_flag, value=value)
    validation.require_flag(knob=True, other=np.False_)


@pytest.mark.parametrize("value", [["none"], {"x": "none"}, {1}, None, 1, float("nan")])
def test_only_a_word_is_one_of_the_words(value):
    """A list or a mapping, which cannot be looked up, as little as another value."""
    message = refused(lambda **knob: validation.require_one_of(("a", "none"), **knob), value=value)
    assert "is unknown: " in message and message.endswith("known: a, none")

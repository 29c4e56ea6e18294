from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Annotated

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


@pytest.mark.parametrize(
    ("rule", "inside", "outside", "words"),
    [
        (validation.whole(2), [2, np.int8(7), 10**400], [1, 2.0], "a whole number of at least 2"),
        (validation.real(), [-1e308, 0, np.float32(2)], [], "a finite number"),
        (validation.real(above=0, most=1), [1e-300, 1], [0, 1.0001], "above 0 and at most 1"),
        (validation.real(least=1, below=2), [1, 1.9], [0.9, 2], "of at least 1 and below 2"),
    ],
)
def test_a_rule_admits_what_its_words_say(rule, inside, outside, words):
    assert rule.words.endswith(words)
    for value in inside:
        rule(value, "knob")
    for value in [*outside, *NO_NUMBERS]:
        with pytest.raises(InputError, match=r"^knob must be "):
            rule(value, "knob")
    if rule.words.startswith("a finite"):
        with pytest.raises(InputError, match="knob"):
            rule(10**400, "knob")


@validation.checked
def declaring(
    count: validation.Count,
    share: validation.Share | None = None,
    on: bool = False,
    free: float = 1,
):
    return count, share, on, free


def test_declarations_are_checked_by_type_and_none_passes_where_it_is_declared():
    assert declaring(1, None, np.True_, "free") == (1, None, True, "free")
    for values in ((0,), (None,), (1, 1.0), (1, 0.5, "yes")):
        with pytest.raises(InputError, match="must be"):
            declaring(*values)


def test_every_check_of_a_declaration_runs_and_other_notes_are_passed_over():
    @validation.checked
    def several(x: Annotated[validation.Count, validation.real(below=5), "in data units"]):
        return x

    assert several(4) == 4
    for wrong in (0, 2.5, 5):  # the first or the second check
        with pytest.raises(InputError, match="x must be"):
            several(wrong)


def test_names_are_refused_with_a_hint_and_required():
    validation.check_names(declaring, ("count", "free"), "it")
    for names, words in ((("count", "shore"), "it has no parameter 'shore': did you mean 'share'"),
                         (("share",), "it needs the parameter 'count'")):  # fmt: skip
        with pytest.raises(InputError, match=re.escape(words)):
            validation.check_names(declaring, names, "it")
    validation.check_names(declaring, ("share",), "it", given=("count",))
    validation.check_names(lambda *rest, size=1, **more: None, ("size",), "it")


def test_an_annotation_that_only_type_checkers_can_read_is_named():
    def theirs(x: "NDArray"):  # noqa: F821, UP037
        """Nothing."""

    with pytest.raises(InputError, match="'NDArray' is not defined; import it"):
        validation.check_annotated(theirs, {})

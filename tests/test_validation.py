from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated

import numpy as np
import pytest

from fedcore import validation
from fedcore.errors import InputError
from refused import refused

NO_NUMBERS = [True, False, np.True_, math.nan, math.inf, -math.inf, "1", None, 1j, [1.0]]


def of_two(value, name):
    validation.require_valid(validation.whole(2), **{name: value})


@pytest.mark.parametrize(
    ("rule", "inside", "outside"),
    [
        (validation.POSITIVE, [1, 1e-300, np.float32(2), np.int8(3), Fraction(1, 3)],
         [*NO_NUMBERS, 0, -0.0, -1, np.float32(-2)]),
        (validation.NON_NEGATIVE, [0, 0.0, 1e-300, Fraction(1, 3)],
         [*NO_NUMBERS, -1, -1e-300]),
        (of_two, [2, np.int64(5)], [True, np.True_, 1.0, "2", None, 1, -3, math.nan]),
        (validation.FLAG, [True, np.False_], [0, 1, "false", None, 1.0]),
        (validation.one_of(("a", "none")), ["a", "none"],
         [["none"], {"x": "none"}, {1}, None, 1, math.nan]),
        (validation.whole(2), [2, np.int8(7), 10**400], [*NO_NUMBERS, 1, 2.0]),
        (validation.real(), [-1e308, 0, np.float32(2)], [*NO_NUMBERS, 10**400]),
        (validation.real(above=0, most=1), [1e-300, 1], [*NO_NUMBERS, 0, 1.0001]),
        (validation.real(least=1, below=2), [1, 1.9], [*NO_NUMBERS, 0.9, 2]),
    ],
)  # fmt: skip
def test_a_rule_admits_what_it_should_and_names_what_it_does_not(rule, inside, outside):
    for value in inside:
        rule(value, "knob")
    for value in outside:
        refused(lambda value=value: rule(value, "knob"), InputError, "knob")


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
    for name, values in (("count", (0,)), ("count", (None,)), ("share", (1, 1.0)),
                         ("on", (1, 0.5, "yes"))):  # fmt: skip
        refused(lambda values=values: declaring(*values), InputError, name)


def test_numbers_become_those_of_python():
    for given, wanted in ((np.uint8(2), 2), (np.uint64(2), 2), (np.True_, True), (np.half(2), 2.0),
                          (np.longdouble(2), 2.0), (Fraction(1, 2), 0.5)):  # fmt: skip
        found = validation.as_python(given)
        assert found == wanted and type(found) is type(wanted)
        assert type(declaring(1, free=given)[-1]) is type(wanted)
    for given in (None, "a", np.ones(2), np.str_("a"), [np.uint8(2)], Fraction(10**400)):
        assert validation.as_python(given) is given


def test_every_check_of_a_declaration_runs_and_other_notes_are_passed_over():
    @validation.checked
    def several(x: Annotated[validation.Count, validation.real(below=5), "in data units"]):
        return x

    assert several(4) == 4
    for wrong in (0, 2.5, 5):  # the first or the second check
        refused(lambda wrong=wrong: several(wrong), InputError, "x")


def test_unknown_names_are_refused_and_those_without_a_default_required():
    validation.check_names(declaring, ("count", "free"), "it")
    for names, said in ((("count", "shore"), "'shore'"), (("share",), "'count'")):
        refused(
            lambda names=names: validation.check_names(declaring, names, "it"), InputError, said
        )
    validation.check_names(declaring, ("share",), "it", given=("count",))
    validation.check_names(lambda *rest, size=1, **more: None, ("size",), "it")


def test_an_annotation_that_only_type_checkers_can_read_is_named():
    def theirs(x: "NDArray"):  # noqa: F821, UP037
        """Nothing."""

    refused(lambda: validation.check_annotated(theirs, {}), InputError, "'NDArray'")

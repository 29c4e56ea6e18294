"""Steps by name: the receiver runs its own copy, and refuses another one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from fedcore.client_steps import naming
from fedcore.client_steps.naming import find_step, name_step
from fedcore.client_steps.values import decode, encode
from fedcore.errors import RefusedError
from fedcore.privacy.mechanisms import post_processing

FACTOR = 2.0


def doubled(data: Any, state: Any, message: Any) -> Any:
    return FACTOR * message


def scaled(factor: float, exponent: int = 1) -> Callable[..., Any]:
    def power(x: Any) -> Any:
        return x**exponent

    def step(data: Any, state: Any, message: Any, *, shift: float = 1.0) -> Any:
        return factor * power(message) + shift

    return step


def back(step: Any) -> Any:
    return decode(encode(step, name_step), find_step)


def test_two_steps_of_one_name_are_told_apart_by_their_code():
    def either(first: bool) -> Callable[..., Any]:
        if first:

            def step(data: Any, state: Any, message: Any) -> Any:
                return 1

        else:

            def step(data: Any, state: Any, message: Any) -> Any:
                return 2

        return step

    assert [back(either(first))(None, None, None) for first in (True, False)] == [1, 2]


NAMELESS = eval("lambda data, state, message: 1", {"__name__": "nowhere"})
CANNOT = [
    (partial(doubled, Z=np.eye(2)), "(2, 2)"),
    (NAMELESS, "has no name"),
    (post_processing(scaled(1.0)), "module"),  # the mark must be the receiver's own
]


@pytest.mark.parametrize(("step", "name"), CANNOT)
def test_a_step_that_cannot_cross(step, name):
    with pytest.raises(RefusedError) as told:
        encode(step, name_step)
    assert name in str(told.value)


def test_a_step_that_is_another_one_here_or_none(monkeypatch):
    sent = encode(doubled, name_step)
    with pytest.raises(RefusedError):
        decode(sent.replace(b'"doubled"', b'"doubles"'), find_step)
    monkeypatch.setitem(globals(), "FACTOR", 3.0)  # the receiver has another version
    naming.fingerprint.cache_clear()
    try:
        with pytest.raises(RefusedError):
            decode(sent, find_step)
    finally:
        naming.fingerprint.cache_clear()

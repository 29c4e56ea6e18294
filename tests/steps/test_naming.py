"""Steps by name: the receiver runs its own copy, and refuses another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

from fedcore.errors import RefusedError
from fedcore.privacy.mechanisms import post_processing
from fedcore.steps import fingerprints
from fedcore.steps.naming import find_step, name_step
from fedcore.steps.values import decode, encode

FACTOR = 2.0


def doubled(data: Any, state: Any, message: Any) -> Any:
    return FACTOR * message


def scaled(factor: float, exponent: int = 1) -> Callable[..., Any]:
    def power(x: Any) -> Any:
        return x**exponent

    def step(data: Any, state: Any, message: Any, *, shift: float = 1.0) -> Any:
        return factor * power(message) + shift

    return step


@dataclass(frozen=True)
class Params:
    k: int
    start: np.ndarray | None = None

    def step(self, data: Any, state: Any, message: Any) -> Any:
        return self.k * message


def back(step: Any) -> Any:
    return decode(encode(step, name_step), find_step)


@pytest.mark.parametrize(
    "step",
    [doubled, scaled(3.0, 2), partial(scaled(3.0), shift=0.5), Params(4).step],
    ids=["module", "nested", "partial", "method"],
)
def test_a_step_comes_back_as_the_installed_one(step):
    found = back(step)
    assert found(None, None, 1.7) == step(None, None, 1.7)
    assert (found is doubled) == (step is doubled)


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


def test_no_array_crosses_with_a_step_and_none_in_the_parameters():
    with pytest.raises(RefusedError, match=r"holds an array of shape \(2, 2\) that was never sent"):
        encode(partial(doubled, Z=np.eye(2)), name_step)
    assert back(Params(4, np.eye(2)).step).__self__ == Params(4)


def test_a_step_without_a_name_is_refused():
    with pytest.raises(RefusedError, match="has no name in an installed module"):
        encode(eval("lambda data, state, message: 1", {"__name__": "nowhere"}), name_step)


def test_a_mark_of_post_processing_must_be_the_receivers_own():
    nested = scaled(1.0)
    with pytest.raises(RefusedError, match="define it in the module itself"):
        encode(post_processing(nested), name_step)


def test_a_changed_step_is_refused(monkeypatch):
    sent = encode(doubled, name_step)
    monkeypatch.setitem(globals(), "FACTOR", 3.0)  # the receiver has another version
    fingerprints.fingerprint.cache_clear()
    try:
        with pytest.raises(RefusedError, match=r"step doubled of .* differs from"):
            decode(sent, find_step)
    finally:
        fingerprints.fingerprint.cache_clear()


def test_a_change_of_a_function_that_a_step_calls_changes_its_fingerprint(monkeypatch):
    from fedcore.algorithms import faps

    def of_faps() -> str:
        fingerprints.fingerprint.cache_clear()
        return fingerprints.fingerprint(faps.run.__code__, "fedcore.algorithms.faps")

    before = of_faps()
    assert before == of_faps()
    monkeypatch.setattr(faps, "_multiplier", faps._square_of)
    assert of_faps() != before
    fingerprints.fingerprint.cache_clear()


def test_a_step_that_is_not_installed_is_refused():
    sent = encode(doubled, name_step)
    with pytest.raises(RefusedError, match=r"doubles of .* is not installed here"):
        decode(sent.replace(b'"doubled"', b'"doubles"'), find_step)

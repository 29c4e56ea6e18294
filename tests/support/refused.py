"""What every refusal is: of a class, on one line, with the name of what is wrong and a way on."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from fedcore.errors import LONGEST, FedcoreError, format_error

# Besides the fault a message says what to do, or what would do, or the place to look at.
WAY_ON = (
    "must need needs needed takes known did expected admits use give leave take keep make write "
    "call drop divide fill rename pass choose run add delete install import read see set sets name "
    "lower save compare check try remove return move put"
)
PLACE = (
    r"\b(row|line|column|client|feature)s? '?[\w(]|\bone of\b|--\w|\bfedcore \w+"
    r"|\bhas \d+ \w+, the|(\.yaml|configuration), [\w ./{}*-]+: |, of <|\bnot an? |\bnot valid \w"
    r"|\bstarts at "
)


def refused(
    call: Callable[[], object],
    error: type[FedcoreError] | tuple[type[FedcoreError], ...],
    *names: str,
    **attributes: Any,
) -> FedcoreError:
    """Assert that a call raises such an error, which says these names and has these attributes."""
    with pytest.raises(error) as caught:
        call()
    for message in (format_error(caught.value), format_error(caught.value, command=True)):
        is_a_line_with_a_way_on(message)
    for name in names:
        assert name in str(caught.value)
    for name, value in attributes.items():
        assert getattr(caught.value, name) == value, name
    return caught.value


def is_a_line_with_a_way_on(message: str) -> None:
    """Assert that a message is one line, not very long, with a remedy or a place."""
    assert message and "\n" not in message and len(message) <= LONGEST, message
    words = set(re.findall(r"\w+", message))
    assert words & {*WAY_ON.split()} or re.search(PLACE, message), message

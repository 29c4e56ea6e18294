"""What every refusal is: of a class, on one line, with the name of what is wrong and its advice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fedcore.errors import LONGEST, FedcoreError, format_error


def refused(
    call: Callable[[], object],
    error: type[FedcoreError] | tuple[type[FedcoreError], ...],
    *names: object,
    **attributes: Any,
) -> FedcoreError:
    """Assert that a call raises such an error, which says these names and has these attributes."""
    with pytest.raises(error) as caught:
        call()
    for command in (False, True):
        message = format_error(caught.value, command)
        is_a_line(message)
        for way in caught.value.advice:
            assert way.format(command) in message  # which is not cut off
    for name in names:
        assert str(name) in str(caught.value)
    for name, value in attributes.items():
        assert getattr(caught.value, name) == value, name
    return caught.value


def is_a_line(message: str) -> None:
    """Assert that a message is one line, and not very long."""
    assert message and "\n" not in message and len(message) <= LONGEST, message

"""How much memory a call takes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any


def peak(call: Callable[[], Any]) -> int:
    """Bytes that Python and NumPy have at the peak of a call."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

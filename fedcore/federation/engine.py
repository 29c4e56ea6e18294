"""Choose the engine, which runs functions at the clients, for all federations of a process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fedcore.federation.federation import Federation
from fedcore.federation.transport import Engine


@contextmanager
def everywhere(engine: Engine) -> Iterator[None]:
    """Let all federations that are created inside the ``with`` block use `engine` by default."""
    before = Federation.engine
    Federation.engine = engine
    try:
        yield
    finally:
        Federation.engine = before

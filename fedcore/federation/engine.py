"""Choose the engine that runs the client steps of all federations in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fedcore.federation.federation import Federation
from fedcore.federation.transport import Engine


@contextmanager
def everywhere(engine: Engine) -> Iterator[None]:
    """Let every federation of this process use `engine` until the ``with`` block ends."""
    before = Federation.engine
    Federation.engine = engine
    try:
        yield
    finally:
        Federation.engine = before

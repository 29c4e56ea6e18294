"""The engine of all federations of a process, which runs client steps and returns their replies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fedcore.federation.federation import Federation
from fedcore.federation.transport import Engine


@contextmanager
def everywhere(engine: Engine) -> Iterator[None]:
    """Let every federation of this process use an engine, until the block ends."""
    before = Federation.engine
    Federation.engine = engine
    try:
        yield
    finally:
        Federation.engine = before

"""Where privacy noise comes from: never from the seed that a run shares with its server.

The server holds the root seed of a run, from which the clients' public streams (``state.rng``)
derive, and every history stores it. Who can draw the noise again subtracts it. So each client's
noise has a generator of its own, seeded with entropy of the operating system that nobody keeps.

In a simulation the noise may derive from the seed instead, so that a run can be repeated. The key
then holds all that sets two runs of one sweep apart, as two runs with the same noise at different
scales give the data away. Such noise protects nobody, and the ledger says so.

The generator is numpy's PCG64: statistically sound, but no cryptographic generator. Who sees enough
of its output without rounding may in principle find its state; no such attack through the rounded,
scaled and added noise is known to us, and no proof that there is none.
"""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from fedcore.client_state import child

NOISE = 2  # first element of the spawn keys of noise, after `client_state.SERVER` and CLIENT
SIMULATED = "simulated noise: no guarantee for these data"
SECRET = "noise from the operating system's entropy, not kept"


def stream(source: np.random.SeedSequence | None, client: int) -> np.random.Generator:
    """Return the noise generator of the client with the id `client`.

    Parameters
    ----------
    source : numpy.random.SeedSequence or None
        None for fresh entropy of the operating system. Otherwise the stream is apart from all
        public streams, even where `source` is the seed of the run.
    client : int
    """
    if source is None:
        return np.random.default_rng(np.random.SeedSequence())
    return np.random.default_rng(child(source, NOISE, client))


def simulated(
    seed: np.random.SeedSequence, name: str, params: Mapping[str, Any]
) -> np.random.SeedSequence:
    """Derive a source of noise from the seed of a run that is a simulation.

    Parameters
    ----------
    seed : numpy.random.SeedSequence
    name : str
        What is run, such as algorithm and cell.
    params : mapping
        Hyper-parameters; runs that differ in one of them, ε for instance, share no noise.
    """
    text = f"{name}({_text(params)})"
    words = np.frombuffer(hashlib.sha256(text.encode()).digest()[:16], "<u4")
    return child(seed, NOISE, *map(int, words))


def _text(value: Any) -> str:
    """Spell out a parameter; equal ones alike, such as 1 and 1.0, a list and its array."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={_text(value[key])}" for key in sorted(value))
    if isinstance(value, np.ndarray) and value.ndim:
        return _text(value.tolist())
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    number = isinstance(value, numbers.Real | np.number) and not isinstance(value, bool)
    return repr(float(value)) if number else repr(value)

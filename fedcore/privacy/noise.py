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
from typing import Any, NamedTuple

import numpy as np

from fedcore.seeds import NOISE, child
from fedcore.validation import require_positive

SIMULATED = "simulated noise: no guarantee for these data"
WEAKENED = "weakened"  # ends the name of a cell with a source that is `Weakened`
SECRET = "noise from the operating system's entropy, not kept"


class Weakened(NamedTuple):
    """Source of noise for the twin of an audit: all of it smaller than the ledger is charged for.

    Such a run breaks its own claim on purpose, to show that the audit would notice. No parameter of
    `fedcore.run` leads here, and the history says that it is one.

    Attributes
    ----------
    source : numpy.random.SeedSequence
    factor : float
        What all noise is multiplied by, above 0.
    """

    source: np.random.SeedSequence
    factor: float


class WeakenedGenerator(np.random.Generator):
    """Generator whose centred noise is smaller by a factor; choices and permutations are not.

    Parameters
    ----------
    bits : numpy.random.BitGenerator
    factor : float
    """

    def __init__(self, bits: np.random.BitGenerator, factor: float) -> None:
        super().__init__(bits)
        require_positive(factor=factor)
        self._factor = factor

    def standard_normal(self, *args: Any, **options: Any) -> Any:
        """`factor` times that of numpy."""
        return self._factor * super().standard_normal(*args, **options)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """With `factor` times the scale."""
        return loc + self._factor * super().normal(0.0, scale, size)

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """With `factor` times the scale."""
        return loc + self._factor * super().laplace(0.0, scale, size)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """With `factor` times the scale."""
        return loc + self._factor * super().gumbel(0.0, scale, size)


Source = np.random.SeedSequence | Weakened


def stream(source: Source | None, client: int) -> np.random.Generator:
    """Return the noise generator of the client with the id `client`.

    Parameters
    ----------
    source : numpy.random.SeedSequence, Weakened or None
        None for fresh entropy of the operating system. Otherwise the stream is apart from all
        public streams, even where `source` is the seed of the run.
    client : int
    """
    if source is None:
        return np.random.default_rng(np.random.SeedSequence())
    if isinstance(source, Weakened):
        honest = stream(source.source, client)
        return WeakenedGenerator(honest.bit_generator, source.factor)
    return np.random.default_rng(child(source, NOISE, client))


def label(simulated: bool, weakened: float | None) -> str:
    """What ledger and history say about the noise."""
    if weakened is not None:
        return f"{SIMULATED}, and only {weakened:g} of what is claimed, to test an audit"
    return SIMULATED if simulated else SECRET


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

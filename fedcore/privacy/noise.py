"""Sources of privacy noise: the operating system's entropy or, in a simulation, the run's seed.

The server knows the root seed of a run, and the run's history file stores it. The clients' random
generators ``state.rng`` derive from this seed, so their numbers are public. If the noise also
derived from this seed, the server could compute the noise and subtract it. The noise of each client
therefore has a separate generator. The seed of this generator is entropy of the operating system,
and fedcore does not store it.

In a simulation the noise derives from the seed, so that the run can be repeated. The results of two
runs with the same noise at different scales would reveal the data. Simulated noise therefore also
depends on the name and the parameters of the run. Simulated noise protects nobody, and the ledger
(the run's privacy account) says so.

The generator is numpy's PCG64, which is statistically sound but not cryptographic. An observer of
enough unrounded output could in principle find the generator's state. A released value, however, is
the rounded sum of scaled noise and a secret value. We know no attack on such releases, and no proof
that none exists.
"""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fedcore.seeds import NOISE, child
from fedcore.validation import POSITIVE, require_valid

SIMULATED = "simulated noise: no guarantee for these data"
WEAKENED = "weakened"  # last part of the name of a cell (planned run) with `Weakened` noise
SECRET = "noise from the operating system's entropy, not kept"


class Weakened(NamedTuple):
    """Source of noise multiplied by a factor; the ledger charges events as if the factor were 1.

    An audit of a method's privacy also runs the method with weakened noise, to show that the audit
    would notice too little noise. `fedcore.run` cannot weaken noise. If the noise of a run is
    weakened, the run's history says so.

    Attributes
    ----------
    source : numpy.random.SeedSequence
        Seed of the noise.
    factor : float
        Positive number by which all noise is multiplied.
    """

    source: np.random.SeedSequence
    factor: float


class WeakenedGenerator(np.random.Generator):
    """Random generator that scales normal, Laplace and Gumbel noise by a factor."""

    def __init__(self, bits: np.random.BitGenerator, factor: float) -> None:
        super().__init__(bits)
        require_valid(POSITIVE, factor=factor)
        self._factor = factor

    def standard_normal(self, *args: Any, **options: Any) -> Any:
        """Draw normal numbers with mean 0 and standard deviation ``factor``."""
        return self._factor * super().standard_normal(*args, **options)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Draw normal numbers with mean `loc` and standard deviation ``factor * scale``."""
        return loc + self._factor * super().normal(0.0, scale, size)

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Draw Laplace numbers with mean `loc` and scale ``factor * scale``."""
        return loc + self._factor * super().laplace(0.0, scale, size)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Draw Gumbel numbers with location `loc` and scale ``factor * scale``."""
        return loc + self._factor * super().gumbel(0.0, scale, size)


Source = np.random.SeedSequence | Weakened


def stream(source: Source | None, client: int) -> np.random.Generator:
    """Return the noise generator of the client with the id `client`.

    Parameters
    ----------
    source : numpy.random.SeedSequence, Weakened or None
        Source of the noise. None means fresh entropy of the operating system. Noise from a seed
        differs from all numbers of ``state.rng``, even if `source` is the seed of the run.
    client : int
    """
    if source is None:
        return np.random.default_rng(np.random.SeedSequence())
    if isinstance(source, Weakened):
        honest = stream(source.source, client)
        return WeakenedGenerator(honest.bit_generator, source.factor)
    return np.random.default_rng(child(source, NOISE, client))


def label(simulated: bool, weakened: float | None) -> str:
    """Return the words with which the ledger and the history describe the source of the noise."""
    if weakened is not None:
        return f"{SIMULATED}, and only {weakened:g} of what is claimed, to test an audit"
    return SIMULATED if simulated else SECRET


def simulated(
    seed: np.random.SeedSequence, name: str, params: Mapping[str, Any]
) -> np.random.SeedSequence:
    """Return the seed of the noise of a simulated run, derived from the run's seed.

    Parameters
    ----------
    seed : numpy.random.SeedSequence
    name : str
        Name of the algorithm or, in the Snakemake workflow, name of the cell (one algorithm on one
        problem).
    params : mapping
        Hyper-parameters. Runs that differ in a hyper-parameter, such as ε, share no noise.
    """
    text = f"{name}({_text(params)})"
    words = np.frombuffer(hashlib.sha256(text.encode()).digest()[:16], "<u4")
    return child(seed, NOISE, *map(int, words))


def _text(value: Any) -> str:
    """Return a parameter as text, with the same text for equal values such as 1 and 1.0."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={_text(value[key])}" for key in sorted(value))
    if isinstance(value, np.ndarray) and value.ndim:
        return _text(value.tolist())
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    number = isinstance(value, numbers.Real | np.number) and not isinstance(value, bool)
    return repr(float(value)) if number else repr(value)

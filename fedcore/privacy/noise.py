"""Sources of privacy noise: the operating system's entropy, or the seed in a simulation.

The server knows the root seed of a run, and every history stores it. The clients' public streams
(``state.rng``) derive from this seed. If the noise came from the same seed, the server could draw
it again and subtract it. Each client's noise therefore has a generator of its own. Its seed is
entropy of the operating system and is not kept.

In a simulation the noise derives from the seed, and the run can be repeated. Two runs with the same
noise at different scales would reveal the data; the noise therefore also depends on the name and
the parameters of the run. Such noise protects nobody, and the ledger says so.

The generator is numpy's PCG64: statistically sound, but not cryptographic. Somebody who sees enough
of its unrounded output may in principle find its state. We know of no attack through rounded,
scaled and added noise, and of no proof that there is none.
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
WEAKENED = "weakened"  # last part of the name of a cell whose source is `Weakened`
SECRET = "noise from the operating system's entropy, not kept"


class Weakened(NamedTuple):
    """Source of noise for the weakened twin of an audit; the ledger charges the full noise.

    Such a run breaks its own claim on purpose, to show that the audit would notice. `fedcore.run`
    cannot make such a run, and the history of a weakened run says that it is one.

    Attributes
    ----------
    source : numpy.random.SeedSequence
    factor : float
        Factor of all noise, a number above 0.
    """

    source: np.random.SeedSequence
    factor: float


class WeakenedGenerator(np.random.Generator):
    """Generator that multiplies centred noise by a factor; choices and permutations do not change.

    Parameters
    ----------
    bits : numpy.random.BitGenerator
    factor : float
    """

    def __init__(self, bits: np.random.BitGenerator, factor: float) -> None:
        super().__init__(bits)
        require_valid(POSITIVE, factor=factor)
        self._factor = factor

    def standard_normal(self, *args: Any, **options: Any) -> Any:
        """Draw from numpy and multiply by `factor`."""
        return self._factor * super().standard_normal(*args, **options)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Draw from numpy with `factor` times the scale."""
        return loc + self._factor * super().normal(0.0, scale, size)

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Draw from numpy with `factor` times the scale."""
        return loc + self._factor * super().laplace(0.0, scale, size)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Draw from numpy with `factor` times the scale."""
        return loc + self._factor * super().gumbel(0.0, scale, size)


Source = np.random.SeedSequence | Weakened


def stream(source: Source | None, client: int) -> np.random.Generator:
    """Return the noise generator of the client with the id `client`.

    Parameters
    ----------
    source : numpy.random.SeedSequence, Weakened or None
        None for fresh entropy of the operating system. Otherwise the stream differs from all
        public streams, even if `source` is the seed of the run.
    client : int
    """
    if source is None:
        return np.random.default_rng(np.random.SeedSequence())
    if isinstance(source, Weakened):
        honest = stream(source.source, client)
        return WeakenedGenerator(honest.bit_generator, source.factor)
    return np.random.default_rng(child(source, NOISE, client))


def label(simulated: bool, weakened: float | None) -> str:
    """Return the sentence about the noise that ledger and history show."""
    if weakened is not None:
        return f"{SIMULATED}, and only {weakened:g} of what is claimed, to test an audit"
    return SIMULATED if simulated else SECRET


def simulated(
    seed: np.random.SeedSequence, name: str, params: Mapping[str, Any]
) -> np.random.SeedSequence:
    """Derive a source of noise from the seed of a simulated run.

    Parameters
    ----------
    seed : numpy.random.SeedSequence
    name : str
        Name of what runs: the algorithm, or the cell of the workflow.
    params : mapping
        Hyper-parameters. Runs that differ in one of them, such as ε, share no noise.
    """
    text = f"{name}({_text(params)})"
    words = np.frombuffer(hashlib.sha256(text.encode()).digest()[:16], "<u4")
    return child(seed, NOISE, *map(int, words))


def _text(value: Any) -> str:
    """Return a parameter as text, the same for equal values: 1 and 1.0, or a list and an array."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={_text(value[key])}" for key in sorted(value))
    if isinstance(value, np.ndarray) and value.ndim:
        return _text(value.tolist())
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    number = isinstance(value, numbers.Real | np.number) and not isinstance(value, bool)
    return repr(float(value)) if number else repr(value)

"""Seeds and spawn keys of all random streams.

A run's seed is the argument ``seed`` of `fedcore.run`, or the seed of a cell's repeat.

A problem's data
    use the configuration's ``seed``, the key of the problem's name and, for repeated draws, the
    number of the draw.
A repeat of a cell
    uses the configuration's ``seed``, the key of ``paper/experiment/problem``, and the repeat's
    number.
The server
    uses the run's seed and `SERVER`.
A client
    uses the run's seed, `CLIENT` and the client's id.
A newcomer
    uses the run's seed, 4, `CLIENT` and the newcomer's number.
Privacy noise
    uses fresh entropy of the operating system for each client.
Simulated privacy noise
    uses the run's seed, `NOISE`, four words of a hash of the run's name and parameters, `NOISE`
    again, and the client's id.
A run of `fedcore.audits.epsilon_bound`
    uses the audit's seed, 0 or 1 for the canary, and the number of the run. The run's noise adds
    `NOISE` and the client's id to these numbers.
Held-out samples of a user's files
    use the given seed and the key of ``files``.
The shuffled rows of a data set
    use the option ``shuffle`` as seed.
The users of the tweets data set
    use the option ``seed``.

A repeat's seed does not depend on the algorithm, so that competing methods share data and starts. A
repeat's seed depends on names, so that a renamed paper, experiment or problem gets other random
numbers. Random numbers that are equal in all runs, such as Lanczos starts, have a constant seed in
the module that draws them.
"""

from __future__ import annotations

import numbers
import zlib

import numpy as np

from fedcore.errors import InputError

SERVER, CLIENT, NOISE = 0, 1, 2  # first element of the spawn keys below the seed of a run


def root_of(seed: int | np.random.SeedSequence) -> np.random.SeedSequence:
    """Return a run's seed, a whole number >= 0 or a seed sequence, as a seed sequence."""
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if not isinstance(seed, numbers.Integral) or isinstance(seed, bool) or seed < 0:
        raise InputError(f"seed must be a whole number of at least 0, got {seed!r}")
    return np.random.SeedSequence(seed)


def child(root: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    """Return the child of a seed sequence with this spawn key, whatever was spawned before."""
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, *key))


def name_key(name: str) -> int:
    """Return the 32-bit checksum (CRC-32) of a name as a spawn key."""
    return zlib.crc32(name.encode())

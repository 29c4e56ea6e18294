"""Seeds and spawn keys of all random streams.

==========================  ===========================  ==========================================
stream                      seed                         spawn key
==========================  ===========================  ==========================================
a problem's data            the configuration's          key of its name; then, of several draws,
                            ``seed``                     the number of the draw
a repeat of a cell          the same                     key of ``paper/experiment/problem``, and
                                                         the number of the repeat
the server's draws          the run's: that of           `SERVER`
                            `fedcore.run`, a repeat
a client's draws            the run's                    `CLIENT`, the client's id
newcomers' draws            the run's                    the number 4; then `CLIENT`, the number of
                                                         the newcomer
privacy noise               entropy of the operating     none
                            system, for each client
privacy noise in a          the run's                    `NOISE`, four words of a hash of
simulation                                               algorithm, cell and parameters; then
                                                         `NOISE`, the client's id
a run of                    the audit's                  0 or 1 (which canary), number of the run;
`audits.epsilon_bound`                                   its noise: `NOISE`, the client's id
rows of a data set in       `shuffle` of its options     none
another order
==========================  ===========================  ==========================================

A repeat's seed does not depend on the algorithm, so that competing methods share data and starts.
It depends on names: a renamed paper, experiment or problem draws other numbers. Draws that are
fixed for all runs have a constant seed where they are made: stand-ins for data sets, the rows
beside an audit's canary, the pattern of a twin, the starts of Lanczos iterations, the data of runs
whose operations are counted.
"""

from __future__ import annotations

import numbers
import zlib

import numpy as np

from fedcore.errors import InputError

SERVER, CLIENT, NOISE = 0, 1, 2  # first element of the spawn keys below the seed of a run


def root_of(seed: int | np.random.SeedSequence) -> np.random.SeedSequence:
    """Return the seed sequence of a run's seed, a whole number >= 0 or a seed sequence itself."""
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if not isinstance(seed, numbers.Integral) or isinstance(seed, bool) or seed < 0:
        raise InputError(f"seed must be a whole number of at least 0, got {seed!r}")
    return np.random.SeedSequence(seed)


def child(root: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    """Child of `root` at a fixed key; unlike with ``spawn``, earlier calls do not change it."""
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, *key))


def name_key(name: str) -> int:
    """Stable 32-bit key of a name, for spawn keys."""
    return zlib.crc32(name.encode())

"""Seeds and spawn keys of all random streams.

Each random stream has a seed and a spawn key (see `numpy.random.SeedSequence`). A cell of an
experiment runs one algorithm on one problem several times; these runs are the cell's repeats. A
run's seed is the argument ``seed`` of `fedcore.run`, or the seed of the repeat. Each random stream
of a run appends further keys to the spawn key of the run's seed.

A problem's data
    are drawn with the configuration's ``seed``. The spawn key is `name_key` of the problem's name,
    followed by the draw's number if the problem is drawn several times.
A repeat of a cell
    has the configuration's ``seed``. The spawn key is `name_key` of ``paper/experiment/problem``,
    followed by the repeat's number.
The server's random numbers
    have the run's seed and the spawn key `SERVER`.
A client's random numbers
    have the run's seed and the spawn key (`CLIENT`, the client's id).
The random numbers of a newcomer, a client that joins after training,
    have the run's seed and the spawn key (4, `CLIENT`, the newcomer's number).
Privacy noise
    has a fresh seed from the operating system for each client.
Simulated privacy noise
    has the run's seed. The spawn key consists of `NOISE`, four words of a hash (of the algorithm's
    or cell's name, and the parameters), `NOISE` again, and the client's id.
A run of `fedcore.audits.epsilon_bound`
    has the audit's seed. The spawn key consists of 0 or 1, for the first or second of two
    neighbouring data sets, and the run's number. Privacy noise in such a run appends `NOISE` and
    the client's id to this key.
The choice of held-out samples from a user's files
    has the given seed and the spawn key `name_key` of ``files``.
The order of a data set's shuffled rows
    has the option ``shuffle`` as seed.
The choice of users in the tweets data set
    has the option ``seed`` as seed.

The seeds of data and repeats do not depend on the algorithm, so competing methods share data and
starting matrices. A repeat's seed depends on names. If a paper, experiment or problem is renamed,
its repeats therefore get other random numbers. Random numbers that are equal in all runs, such as
starts of Lanczos iterations, have a constant seed in the module that draws them.
"""

from __future__ import annotations

import numbers
import zlib

import numpy as np

from fedcore.errors import InputError

SERVER, CLIENT, NOISE = 0, 1, 2  # first element of the spawn keys below the seed of a run


def root_of(seed: int | np.random.SeedSequence) -> np.random.SeedSequence:
    """Return the seed of a run (a whole number >= 0, or a seed sequence) as a seed sequence."""
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if not isinstance(seed, numbers.Integral) or isinstance(seed, bool) or seed < 0:
        raise InputError(f"seed must be a whole number of at least 0, got {seed!r}")
    return np.random.SeedSequence(seed)


def child(root: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    """Return the child of `root` with the added spawn key `key`; equal keys give equal children."""
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, *key))


def name_key(name: str) -> int:
    """Return the 32-bit checksum (CRC-32) of a name as a spawn key."""
    return zlib.crc32(name.encode())

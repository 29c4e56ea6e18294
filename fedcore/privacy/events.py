"""Privacy events, which describe how strongly one release depends on one record (row) of a client.

The neighbouring relation of the run says which change of one record counts.
`fedcore.privacy.mechanisms` counts an event for every release, and `fedcore.privacy.accounting`
computes the ε of all events together. No privacy amplification by sampling is assumed: each event
counts in full for every client that takes part.
"""

from __future__ import annotations

from dataclasses import dataclass

NEIGHBOURS = {
    "replace_one": "one record of one client is replaced by another",
    "add_or_remove_one": "one record of one client is added or removed",
    "zero_out_one": "one record of one client is put to zero; how many there are is public",
    "change_entry": "one entry of one record of one client is changed by at most 1",
}


@dataclass(frozen=True)
class Gaussian:
    """Release of a vector or matrix with Gaussian noise.

    Attributes
    ----------
    noise_multiplier : float
        Standard deviation of the noise on each entry, in units of `sensitivity`.
    sensitivity : float
        Largest Euclidean (Frobenius) distance between the values, before noise, for neighbouring
        data.
    """

    noise_multiplier: float
    sensitivity: float = 1.0


@dataclass(frozen=True)
class Laplace:
    """Release of a number or vector with Laplace noise.

    Attributes
    ----------
    noise_multiplier : float
        Scale b of the noise, in units of `sensitivity`. The release is (1/b)-DP.
    sensitivity : float
        Largest L1 distance between the values, before noise, for neighbouring data.
    """

    noise_multiplier: float
    sensitivity: float = 1.0


@dataclass(frozen=True)
class Bounded:
    """Release by a mechanism that is known only to be (ε, δ)-DP.

    Attributes
    ----------
    epsilon, delta : float
    mechanism : str
        Name of the mechanism.
    """

    epsilon: float
    delta: float = 0.0
    mechanism: str = ""


Event = Gaussian | Laplace | Bounded

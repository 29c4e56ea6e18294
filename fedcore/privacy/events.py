"""Privacy events: how strongly *one* release depends on one record of a client.

"Depends" refers to the neighbouring relation of the run. `fedcore.privacy.mechanisms` charges an
event with every release, and `fedcore.privacy.accounting` composes events. No event claims
amplification by sampling: in each round, a client is charged in full if it was drawn, and is not
charged otherwise.
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
    """Gaussian noise on a vector or matrix.

    Attributes
    ----------
    noise_multiplier : float
        Standard deviation of an entry's noise, in units of `sensitivity`.
    sensitivity : float
        Largest Euclidean (Frobenius) distance between the values of neighbouring data.
    """

    noise_multiplier: float
    sensitivity: float = 1.0


@dataclass(frozen=True)
class Laplace:
    """Laplace noise on a number or vector.

    Attributes
    ----------
    noise_multiplier : float
        Scale b of the noise, in units of `sensitivity`; the release is (1/b)-DP.
    sensitivity : float
        Largest L1 distance between the values of neighbouring data.
    """

    noise_multiplier: float
    sensitivity: float = 1.0


@dataclass(frozen=True)
class Bounded:
    """Any (ε, δ)-differentially private mechanism about which no more is known.

    Attributes
    ----------
    epsilon, delta : float
    mechanism : str
        Name of the mechanism, for the record.
    """

    epsilon: float
    delta: float = 0.0
    mechanism: str = ""


Event = Gaussian | Laplace | Bounded

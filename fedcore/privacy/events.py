"""Privacy events: what a mechanism has done to a client's records, apart from how it is accounted.

An event says how strongly *one* release depends on one record, under the neighbouring relation of
the run. `fedcore.privacy.mechanisms` makes them, one with every noise it draws, and
`fedcore.privacy.accounting` composes them. No event claims amplification by sampling: a client that
was not drawn has released nothing and is charged nothing, one that was drawn is charged in full.
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
    """Any (ε, δ)-differentially private mechanism, of which no more is known.

    Attributes
    ----------
    epsilon, delta : float
    mechanism : str
        Its name, for the record.
    """

    epsilon: float
    delta: float = 0.0
    mechanism: str = ""


Event = Gaussian | Laplace | Bounded

"""Mechanisms that add noise and charge the ledger for it, in one call.

After `Federation.protect`, every client's state has ``state.privacy``, a `Mechanisms`. A client
step calls a method of this object to release something; the call adds the noise and charges the
event. A reply must consist of what mechanisms returned in the same call of the step. Otherwise the
upload counts as unprotected, and the run's ε is infinite. A step declares by `derived` what it
computes from releases, and by `post_processing` that it repeats earlier releases. The ledger trusts
these declarations and the sensitivities: it notices that noise was forgotten, but not that a proof
is wrong.

Every record belongs to one client. Losses of clients with separate data therefore do not add up:
the run's ε is the largest of the clients'. This ε is the guarantee towards the server, and towards
whoever sees all messages. The server knows the run's seed. Noise therefore has a stream of its own,
from the operating system's entropy unless the run is a simulation (`fedcore.privacy.noise`). Noise
is drawn in floating point: attacks on its last bits (Mironov, CCS 2012) are not accounted for.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from fedcore.errors import InputError
from fedcore.privacy import accounting
from fedcore.privacy.events import NEIGHBOURS, Bounded, Event, Gaussian, Laplace
from fedcore.privacy.noise import label
from fedcore.validation import NON_NEGATIVE, POSITIVE, one_of, require_valid

AnyStep = TypeVar("AnyStep")
Value = TypeVar("Value")


def post_processing(step: AnyStep) -> AnyStep:
    """Mark a client step that replies only with what its mechanisms released in earlier calls.

    Parameters
    ----------
    step : callable

    Returns
    -------
    callable
        The step itself.
    """
    step.post_processing = True  # type: ignore[attr-defined]
    return step


def derived(state: Any, value: Value) -> Value:
    """Declare that `value`, which is to be uploaded, depends on releases and public values only.

    Parameters
    ----------
    state : namespace
        The client's state; if it has no ``privacy``, there is nothing to declare.
    value : number or ndarray

    Returns
    -------
    number or ndarray
        `value` itself, not a copy. In a private run an array becomes read-only.
    """
    return state.privacy._release(value) if hasattr(state, "privacy") else value


@dataclass
class Account:
    """The releases that have been charged to one client's records.

    Attributes
    ----------
    events : Counter of Event
    unprotected : set of str
        Client steps that have uploaded something that no mechanism returned.
    """

    events: Counter[Event] = field(default_factory=Counter)
    unprotected: set[str] = field(default_factory=set)


class Privacy:
    """Privacy part of the ledger: one account per client.

    Parameters
    ----------
    n_clients : int
    delta : float
        δ at which ε is stated.
    neighbours : {"replace_one", "add_or_remove_one", "zero_out_one", "change_entry"}
        Relation to which all sensitivities of the run refer.
    simulated : bool, default=False
        Whether the noise can be drawn again from a seed. Such noise protects nobody.
    weakened : float, optional
        Factor of the noise in the weakened twin of an audit; the ledger charges the full noise.

    Attributes
    ----------
    accounts : list of Account
    """

    def __init__(
        self,
        n_clients: int,
        delta: float,
        neighbours: str,
        *,
        simulated: bool = False,
        weakened: float | None = None,
    ) -> None:
        accounting.require_delta(delta)
        require_valid(one_of(NEIGHBOURS), neighbours=neighbours)
        self.delta, self.neighbours = float(delta), neighbours
        self.simulated, self.weakened = simulated, weakened
        self.accounts = [Account() for _ in range(n_clients)]

    @property
    def unprotected(self) -> set[str]:
        """Client steps that have uploaded something that no mechanism returned."""
        return {step for account in self.accounts for step in account.unprotected}

    def epsilon(self, *, delta: float | None = None) -> float:
        """ε spent so far: the largest of any client's; infinite after an unprotected upload.

        After an adaptive stop, the ε spent can be below the budget. The guarantee to quote is the
        budget (docs/privacy.md).

        Parameters
        ----------
        delta : float, optional
            δ at which ε is stated; the ledger's own by default. If several methods each spend all
            of their δ, the sum of their runs has a finite ε only at the sum of these δ.
        """
        delta = self.delta if delta is None else delta
        accounting.require_delta(delta)
        if self.unprotected:
            return float("inf")
        distinct = {frozenset(account.events.items()) for account in self.accounts}
        return max(accounting.epsilon(dict(e), delta) for e in distinct)

    def about(self) -> dict[str, Any]:
        """Return δ, neighbouring relation, accounting, kinds of events and source of the noise."""
        kinds = {type(event).__name__ for account in self.accounts for event in account.events}
        return {
            "delta": self.delta,
            "neighbours": self.neighbours,
            "accounting": "tight",
            "mechanisms": sorted(kinds),
            "noise": label(self.simulated, self.weakened),
            **({} if self.weakened is None else {"weakened": self.weakened}),
            **({"unprotected": sorted(self.unprotected)} if self.unprotected else {}),
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Privacy) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        noise = f", {label(self.simulated, self.weakened)}" if self.simulated else ""
        bare = f", unprotected uploads by {sorted(self.unprotected)}" if self.unprotected else ""
        return (
            f"<epsilon = {self.epsilon():.4g} at delta = {self.delta:g}, "
            f"neighbours = {self.neighbours}{noise}{bare}>"
        )

    def __add__(self, other: Privacy) -> Privacy:
        """Compose two runs on the same clients, client by client and event by event.

        Raises
        ------
        InputError
            When they differ in the number of clients, in neighbouring relation or in δ.
        """
        for what, ours, theirs in (
            ("of {} and {} clients", len(self.accounts), len(other.accounts)),
            ("under the neighbouring relations {} and {}", self.neighbours, other.neighbours),
            ("at delta = {} and {}", self.delta, other.delta),
        ):
            if ours != theirs:
                raise InputError(
                    f"ledgers {what.format(ours, theirs)} do not add up: add runs on the same "
                    "clients, under one relation, at one delta"
                )
        factors = [run.weakened for run in (self, other) if run.weakened is not None]
        total = Privacy(
            len(self.accounts), self.delta, self.neighbours,
            simulated=self.simulated or other.simulated, weakened=min(factors, default=None),
        )  # fmt: skip
        total.accounts = [
            Account(a.events + b.events, a.unprotected | b.unprotected)
            for a, b in zip(self.accounts, other.accounts, strict=True)
        ]
        return total


class Mechanisms:
    """Noise for one client, drawn from a stream of its own and charged to its account.

    Parameters
    ----------
    rng : numpy.random.Generator
        The client's noise; independent of its public stream ``state.rng``.
    account : Account

    Attributes
    ----------
    released : list
        Values that mechanisms returned, or that `derived` declared, in the current call of a step.
        An upload may consist of these values and of views of them.

    Notes
    -----
    Values must be finite real numbers, else `InputError`. Whole numbers and truth values become
    float64 first, as rounding would remove noise. For float32, noise is added in float64 and the
    sum is rounded.
    """

    def __init__(self, rng: np.random.Generator, account: Account) -> None:
        self._rng, self._account = rng, account
        self.released: list[Any] = []

    @property
    def hidden(self) -> np.random.Generator:
        """The stream of the noise, for draws that must stay secret and that release nothing."""
        return self._rng

    def gaussian(self, value: Any, *, sensitivity: float, noise_multiplier: float) -> Any:
        """Return `value` with N(0, (sensitivity · noise_multiplier)²) noise on every entry.

        Parameters
        ----------
        value : float or ndarray
        sensitivity : float
            Largest Euclidean (Frobenius) distance of the values of neighbouring data.
        noise_multiplier : float
            Standard deviation in units of `sensitivity`.
        """
        require_valid(POSITIVE, sensitivity=sensitivity, noise_multiplier=noise_multiplier)
        value = _real(value)
        noise = self._rng.standard_normal(np.shape(value))
        self._charge(Gaussian(float(noise_multiplier), float(sensitivity)))
        return self._release(_add(value, sensitivity * noise_multiplier * noise))

    def laplace(self, value: Any, *, sensitivity: float, noise_multiplier: float) -> Any:
        """Return `value` with Laplace noise of scale ``sensitivity · noise_multiplier``.

        Parameters
        ----------
        value : float or ndarray
        sensitivity : float
            Largest L1 distance of the values of neighbouring data.
        noise_multiplier : float
            Scale in units of `sensitivity`, 1/ε.
        """
        require_valid(POSITIVE, sensitivity=sensitivity, noise_multiplier=noise_multiplier)
        value = _real(value)
        noise = self._rng.laplace(0.0, 1.0, np.shape(value))
        self._charge(Laplace(float(noise_multiplier), float(sensitivity)))
        return self._release(_add(value, sensitivity * noise_multiplier * noise))

    def exponential(
        self, scores: Sequence[float], *, sensitivity: float, epsilon: float
    ) -> np.integer:
        """Return an index, drawn with probabilities proportional to ``exp(ε score / 2Δ)``.

        Parameters
        ----------
        scores : sequence of float
        sensitivity : float
            Δ, largest change of any score between neighbouring data.
        epsilon : float
            The choice is ε-DP (McSherry & Talwar, FOCS 2007).
        """
        require_valid(POSITIVE, sensitivity=sensitivity, epsilon=epsilon)
        weights = np.asarray(_real(np.asarray(scores)), np.float64) * (
            epsilon / (2.0 * sensitivity)
        )
        self._charge(Bounded(float(epsilon), mechanism="exponential"))
        # A new object: small Python integers are shared, and `covers` compares identities.
        return self._release(np.int64(np.argmax(weights + self._rng.gumbel(size=len(weights)))))

    def above_threshold(
        self,
        queries: Iterable[float],
        threshold: float,
        *,
        sensitivity: float,
        epsilon: float,
        monotone: bool = False,
    ) -> np.integer | None:
        """Return the index of the first query that, with noise, reaches the noisy threshold.

        None if no query reaches it. This is the sparse vector technique with one answer (Dwork &
        Roth, *Algorithmic foundations of differential privacy*, Algorithm 1): noise Lap(2Δ/ε) on
        the threshold and Lap(4Δ/ε) on every query. It is ε-DP for any number of queries.

        Parameters
        ----------
        queries : iterable of float
            Read one by one, up to the answer.
        threshold : float
        sensitivity : float
            Δ, largest change of any query between neighbouring data.
        epsilon : float
        monotone : bool, default=False
            Whether a change of one record moves all queries the same way, as adding a row does
            with counts. Noise Lap(2Δ/ε) on a query is then enough (Lyu, Su & Li, VLDB 2017,
            Theorem 5).
        """
        require_valid(POSITIVE, sensitivity=sensitivity, epsilon=epsilon)
        self._charge(Bounded(float(epsilon), mechanism="sparse vector"))
        level = _real(threshold) + self._rng.laplace(0.0, 2.0 * sensitivity / epsilon)
        scale = (2.0 if monotone else 4.0) * sensitivity / epsilon
        for k, query in enumerate(queries):
            if _real(query) + self._rng.laplace(0.0, scale) >= level:
                return self._release(np.int64(k))
        return None

    def bounded(self, epsilon: float, delta: float, mechanism: str) -> np.random.Generator:
        """Charge a mechanism whose privacy is proved as a whole; return its stream of noise.

        The step must declare its reply by `derived`.

        Parameters
        ----------
        epsilon, delta : float
            The mechanism is (ε, δ)-DP under the neighbouring relation of the run.
        mechanism : str
            Its name, for the record.
        """
        require_valid(NON_NEGATIVE, epsilon=epsilon, delta=delta)
        self._charge(Bounded(float(epsilon), float(delta), mechanism))
        return self._rng

    def _charge(self, event: Event) -> None:
        self._account.events[event] += 1

    def _release(self, value: Value) -> Value:
        if isinstance(value, np.ndarray):
            value.flags.writeable = False  # an edited array would no longer be the release
        self.released.append(value)
        return value

    def covers(self, reply: Any) -> bool:
        """Whether `reply` is empty, or consists of values that this call of the step released."""
        if isinstance(reply, Mapping):
            reply = list(reply.values())
        if isinstance(reply, list | tuple):
            return all(self.covers(part) for part in reply)
        if reply is None or np.size(reply) == 0:
            return True
        base = reply.base if isinstance(reply, np.ndarray) else None
        return any(reply is one or (base is not None and base is one) for one in self.released)


def _real(value: Any) -> Any:
    """Require a real, finite value; return it as float64 unless it is float32."""
    if isinstance(value, float) and math.isfinite(value):
        return value
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise InputError(f"a mechanism adds noise to real numbers, got {array.dtype}")
    if not np.isfinite(array).all():
        raise InputError(
            f"a value of shape {array.shape} to be released holds NaN or infinity, which noise "
            "does not hide: scale the rows of the data, or clip them"
        )
    if not array.ndim:
        return float(array)
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _add(value: Any, noise: Any) -> Any:
    """Return the sum, computed in float64, in the precision of the value."""
    if isinstance(value, np.ndarray):
        return (value + noise).astype(value.dtype, copy=False)
    return float(value + noise)

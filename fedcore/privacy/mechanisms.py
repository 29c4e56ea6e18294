"""Mechanisms, which add noise to a value and charge the privacy loss to the ledger in one call.

After `Federation.protect`, every client's state has an object ``state.privacy`` of the class
`Mechanisms`. To release a value, a client step (a function that runs at a client) calls a method of
``state.privacy``. The method adds the noise and charges a privacy event to the ledger, which counts
messages and privacy loss. A step may reply with values that these methods returned during the same
call of the step. It may also reply with values that it computed from such values and declared with
`derived`. A step marked by `post_processing` may reply with values released in earlier calls. Any
other upload counts as unprotected, and makes the run's ε infinite. The ledger trusts the
declarations and the stated sensitivities. It detects an upload without noise, but not a wrong
sensitivity or a wrong declaration.

Every record (row of data) belongs to one client, so the clients' privacy losses do not add up. The
run's ε is the largest ε of any client. This ε holds against the server and every other observer of
all messages. The server knows the seed of the run. Noise therefore comes from a separate random
stream, whose seed is entropy of the operating system unless the run is a simulation
(`fedcore.privacy.noise`). Noise is drawn in floating point, and the guarantee does not cover
attacks on the last bits of the noise (Mironov, CCS 2012).
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
    """Mark a client step as one that replies only with values released in earlier calls.

    Parameters
    ----------
    step : callable
        Client step, a function ``(data, state, message) -> reply``.
    """
    step.post_processing = True  # type: ignore[attr-defined]
    return step


def derived(state: Any, value: Value) -> Value:
    """Declare that `value`, a part of a reply, depends only on noisy releases and public values.

    Parameters
    ----------
    state : namespace
        The client's state. If the state has no ``privacy``, the declaration has no effect.
    value : number or ndarray

    Returns
    -------
    number or ndarray
        The object `value` itself; in a private run, an array is made read-only.
    """
    return state.privacy._release(value) if hasattr(state, "privacy") else value


@dataclass
class Account:
    """Privacy events that the ledger has charged to one client's records.

    Attributes
    ----------
    events : Counter of Event
        Number of times that each event was charged.
    unprotected : set of str
        Names of client steps that have uploaded a value neither released nor declared by `derived`.
    """

    events: Counter[Event] = field(default_factory=Counter)
    unprotected: set[str] = field(default_factory=set)


class Privacy:
    """Privacy part of a run's ledger, with one account of privacy events per client.

    Parameters
    ----------
    n_clients : int
    delta : float
        The δ at which ε is stated.
    neighbours : {"replace_one", "add_or_remove_one", "zero_out_one", "change_entry"}
        Neighbouring relation to which all sensitivities of the run refer.
    simulated : bool, default=False
        True if the noise comes from a known seed and can be drawn again. Such noise protects
        nobody.
    weakened : float, optional
        Factor by which an audit multiplies the noise. The ledger charges events as if this factor
        were 1.
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
        """Return the names of client steps that have uploaded an unprotected value."""
        return {step for account in self.accounts for step in account.unprotected}

    def epsilon(self, *, delta: float | None = None) -> float:
        """Return the largest ε of any client so far, or infinity after an unprotected upload.

        If released values decided when the run stopped, this ε can be below the ε that the method
        had as its budget. The guarantee to quote is then the budget (docs/privacy.md).

        Parameters
        ----------
        delta : float, optional
            The δ at which ε is stated, by default the ledger's δ. After adding several runs that
            each use their whole δ, choose at least the sum of these δ; at a smaller δ, ε can be
            infinite.
        """
        delta = self.delta if delta is None else delta
        accounting.require_delta(delta)
        if self.unprotected:
            return float("inf")
        distinct = {frozenset(account.events.items()) for account in self.accounts}
        return max(accounting.epsilon(dict(e), delta) for e in distinct)

    def about(self) -> dict[str, Any]:
        """Return a dict: δ, neighbouring relation, accounting, kinds of events, source of noise."""
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
        """Return the composition of two runs on the same clients: add up each client's events.

        Raises
        ------
        InputError
            Raised if the runs differ in number of clients, neighbouring relation or δ.
        """
        for what, ours, theirs in (
            ("of {} and {} clients", len(self.accounts), len(other.accounts)),
            ("under the neighbouring relations {} and {}", self.neighbours, other.neighbours),
            ("at delta = {} and {}", self.delta, other.delta),
        ):
            if ours != theirs:
                raise InputError(
                    f"ledgers {what.format(ours, theirs)} cannot be added: add only runs on the "
                    "same clients, under one neighbouring relation, at one delta"
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
    """Mechanisms of one client, which add noise and charge the client's privacy account.

    Parameters
    ----------
    rng : numpy.random.Generator
        Generator of the client's noise, independent of ``state.rng``, whose seed the server knows.
    account : Account

    Attributes
    ----------
    released : list
        Values that mechanisms returned, or that `derived` declared, in the current call of a client
        step. An upload may consist of these objects and of views of these arrays.

    Notes
    -----
    Values to be released must be finite real numbers; otherwise a mechanism raises an `InputError`.
    Integers and booleans become float64 before noise is added. Noise on float32 values is added in
    float64, and the sum is rounded to float32.
    """

    def __init__(self, rng: np.random.Generator, account: Account) -> None:
        self._rng, self._account = rng, account
        self.released: list[Any] = []

    @property
    def hidden(self) -> np.random.Generator:
        """Return the noise generator, from which a method can draw secret numbers besides noise."""
        return self._rng

    def gaussian(self, value: Any, *, sensitivity: float, noise_multiplier: float) -> Any:
        """Return `value` with N(0, (sensitivity · noise_multiplier)²) noise on every entry.

        Parameters
        ----------
        value : float or ndarray
        sensitivity : float
            Largest Euclidean (Frobenius) distance between the values for two neighbouring data
            sets.
        noise_multiplier : float
            Standard deviation of the noise in units of `sensitivity`.
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
            Largest L1 distance between the values for two neighbouring data sets.
        noise_multiplier : float
            Scale b of the noise, in units of `sensitivity`. The release is (1/b)-DP.
        """
        require_valid(POSITIVE, sensitivity=sensitivity, noise_multiplier=noise_multiplier)
        value = _real(value)
        noise = self._rng.laplace(0.0, 1.0, np.shape(value))
        self._charge(Laplace(float(noise_multiplier), float(sensitivity)))
        return self._release(_add(value, sensitivity * noise_multiplier * noise))

    def exponential(
        self, scores: Sequence[float], *, sensitivity: float, epsilon: float
    ) -> np.integer:
        """Draw an index into `scores` with probabilities proportional to ``exp(ε score / 2Δ)``.

        The choice is ε-DP (McSherry & Talwar, FOCS 2007).

        Parameters
        ----------
        scores : sequence of float
        sensitivity : float
            Largest change Δ of any score between neighbouring data.
        epsilon : float
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
        """Return the index of the first query whose noisy value reaches the noisy threshold.

        The result is None if no query reaches the threshold. The method is the sparse vector
        technique with one answer (Dwork & Roth, *Algorithmic foundations of differential privacy*,
        Algorithm 1). The threshold gets noise Lap(2Δ/ε), and every query gets noise Lap(4Δ/ε) or,
        with `monotone`, Lap(2Δ/ε). The release is ε-DP for any number of queries.

        Parameters
        ----------
        queries : iterable of float
            Query values, which are read one by one until a noisy value reaches the noisy threshold.
        threshold : float
        sensitivity : float
            Largest change Δ of any query between neighbouring data.
        epsilon : float
        monotone : bool, default=False
            True if a change of one record moves all queries in the same direction, for example if
            the queries are counts and a row is added. For such queries, noise Lap(2Δ/ε) is enough
            (Lyu, Su & Li, VLDB 2017, Theorem 5).
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
        """Charge an (ε, δ)-DP mechanism of the caller, and return the generator for its noise.

        The client step that calls this method must declare its reply with `derived`.

        Parameters
        ----------
        epsilon, delta : float
            The mechanism must be (ε, δ)-DP under the neighbouring relation of the run.
        mechanism : str
            Name of the mechanism.
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
        """Return whether all parts of `reply` are in `released`, or are views of arrays in it."""
        if isinstance(reply, Mapping):
            reply = list(reply.values())
        if isinstance(reply, list | tuple):
            return all(self.covers(part) for part in reply)
        if reply is None or np.size(reply) == 0:
            return True
        base = reply.base if isinstance(reply, np.ndarray) else None
        return any(reply is one or (base is not None and base is one) for one in self.released)


def _real(value: Any) -> Any:
    """Require a finite real value, and convert it to float64 unless it is a float32 array."""
    if isinstance(value, float) and math.isfinite(value):
        return value
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise InputError(f"a mechanism can add noise only to real numbers, got {array.dtype}")
    if not np.isfinite(array).all():
        raise InputError(
            f"a value of shape {array.shape} to be released holds NaN or infinity, which noise "
            "does not hide: scale the rows of the data, or clip them"
        )
    if not array.ndim:
        return float(array)
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _add(value: Any, noise: Any) -> Any:
    """Add noise to a value in float64, and round the sum to the precision of the value."""
    if isinstance(value, np.ndarray):
        return (value + noise).astype(value.dtype, copy=False)
    return float(value + noise)

"""The clients, the server, and the only road between them.

An algorithm talks to its clients through a `Federation` and through nothing else: it broadcasts a
message, and it gathers, sums or averages what a *client step* replies. A client step is a plain
function ``step(data, state, message) -> reply``; ``state`` stays with the client between rounds and
carries the client's own random generator as ``state.rng`` and, as ``state.kept``, what is derived
from its data alone and serves later runs on them, too. Every message is charged to the ledger, and
in a private run every noise (`Federation.protect`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from types import SimpleNamespace
from typing import Any, Protocol, TypeVar

import numpy as np

from fedcore.checks import require_at_least
from fedcore.clients import Clients
from fedcore.errors import InputError
from fedcore.ledger import Ledger, Shape, payload
from fedcore.privacy.mechanisms import Mechanisms, Privacy
from fedcore.privacy.rows import clip_rows, require_norm, require_rows

Step = Callable[[Any, SimpleNamespace, Any], Any]
Twin = Callable[[Clients, SimpleNamespace, Any], Any]
AnyStep = TypeVar("AnyStep", bound=Step)

SERVER, CLIENT = 0, 1  # first element of the spawn keys below the seed of a run


def summed(twin: Twin) -> Callable[[AnyStep], AnyStep]:
    """Give a client step a twin that computes the sum of all replies at once.

    Parameters
    ----------
    twin : callable
        ``twin(clients, memory, message) -> sum of the replies``, or None for "run the step".
        `memory` belongs to the twin and lasts as long as the federation.

    Returns
    -------
    callable
        Decorator of a step. The step must be a function of its data and message alone, must not
        draw or keep anything in its state, and its replies must all have the shape and dtype of
        their sum.

    Notes
    -----
    `Federation.sum` and `Federation.mean` ask the twin when all clients take part and hold the same
    message; the ledger is charged as if every client had replied. Twin and step agree to rounding.
    Whether the twin is taken may depend on sizes and on earlier calls, never on time or threads.
    """

    def attach(step: AnyStep) -> AnyStep:
        step.summed = twin  # type: ignore[attr-defined]
        return step

    return attach


class Observer(Protocol):
    """What watches the uploads; `fedcore.transcript.Transcript` is one.

    Attributes
    ----------
    clients : sequence of int or None
        Positions of the watched clients; None for all.
    sums_only : bool
        Whether of a sum or mean only the total is seen.
    """

    clients: Sequence[int] | None
    sums_only: bool

    def saw(self, number: int, exchanges: Sequence[tuple[int | None, Any, Any]]) -> None:
        """Take note of one upload: (client or None for the total, its last message, its reply)."""


class Federation:
    """In-process federation of clients, each with its own data, state and random stream.

    Parameters
    ----------
    clients : sequence of ndarray of shape (n_i, d)
        One matrix per client, rows are samples.
    seed : int or numpy.random.SeedSequence
        Source of all randomness. The stream of a client depends on its id alone, so neither the
        order of the clients nor the number of threads changes a draw.
    ids : sequence of int, optional
        Names of the clients in the seed's spawn keys; the default is 0, 1, 2, …
    threads : int, default=1
        Client steps that run at the same time.
    transcript : Observer, optional
        Is shown every upload, see `fedcore.transcript`. It changes neither results nor ledger.
    check : bool, default=True
        False when the clients have passed `check_clients` already.
    bare_finish : bool, default=False
        Whether the caller will make an exchange without noise after the algorithm; `protect` then
        refuses.

    Notes
    -----
    When all clients hold float32 data, every floating-point number crosses as float32, in half the
    bytes; otherwise messages cross as they are.

    Attributes
    ----------
    ledger : Ledger
        What has crossed so far.
    rng : numpy.random.Generator
        The server's random stream.
    shape : Shape
        Number of clients, samples (of all clients) and features.
    """

    def __init__(
        self,
        clients: Sequence[np.ndarray],
        seed: int | np.random.SeedSequence = 0,
        *,
        ids: Sequence[int] | None = None,
        threads: int = 1,
        transcript: Observer | None = None,
        check: bool = True,
        bare_finish: bool = False,
    ) -> None:
        checked = check_clients(clients) if check else clients
        self._data = checked if isinstance(checked, Clients) else Clients(checked)
        self._single = self._data.single
        ids = list(range(len(self._data))) if ids is None else list(ids)
        if len(ids) != len(self._data) or len(set(ids)) != len(ids):
            raise InputError(f"{len(self._data)} clients need as many distinct ids; got {ids}")
        require_at_least(1, threads=threads)
        if not isinstance(seed, np.random.SeedSequence):
            require_at_least(0, seed=seed)
        root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        self.rng = np.random.default_rng(_child(root, SERVER))
        self._state = [
            SimpleNamespace(rng=np.random.default_rng(_child(root, CLIENT, i)), kept=kept)
            for i, kept in zip(ids, self._data.kept_of, strict=True)
        ]
        self._inbox: list[Any] = [None] * len(self._data)
        self._threads = threads
        self._transcript = transcript
        self._bare_finish = bare_finish
        watched = None if transcript is None else transcript.clients
        if watched is not None and not set(watched) <= set(range(len(self._data))):
            raise InputError(f"cannot watch clients {list(watched)} of {len(self._data)}")
        self._memory: dict[Twin, SimpleNamespace] = {}
        self.ledger = Ledger()
        self.shape = Shape(
            n_clients=len(self._data),
            n_samples=self._data.n_samples,
            n_features=self._data.n_features,
        )

    def protect(self, *, delta: float, neighbours: str) -> None:
        """Keep account of privacy from here on: clients get ``state.privacy``, the ledger an ε.

        To be called before the first upload; see `fedcore.privacy.mechanisms`.

        Parameters
        ----------
        delta : float
            δ at which ε is stated.
        neighbours : {"replace_one", "add_or_remove_one", "change_entry"}
            Neighbouring relation, to which the sensitivities of all mechanisms refer.

        Raises
        ------
        InputError
            When an exchange without noise has been made or is to follow.
        """
        if self.ledger.rounds or self.ledger.privacy is not None:
            raise InputError("protect comes once, before the first upload")
        if self._bare_finish:
            raise InputError(
                "an exchange without noise is to follow this algorithm (FederatedPCA's last round) "
                "and would void its guarantee: use fedcore.run"
            )
        self.ledger.privacy = Privacy(len(self._data), delta, neighbours)
        for state, account in zip(self._state, self.ledger.privacy.accounts, strict=True):
            state.privacy = Mechanisms(state.rng, account)

    def bound_rows(self, bound: float = 1.0, *, clip: bool = False) -> None:
        """Make sure that no row is longer than `bound`: a promise that sensitivities rest on.

        With `clip` clients scale longer rows down to it, else such a row is refused, as it is where
        rows have been reduced to factors. No scale is ever taken from the data.

        Raises
        ------
        InputError
            For a longer row that cannot or may not be clipped.
        """
        reduction = self._data.reduction
        if reduction is not None:
            require_norm(reduction.largest_row, bound, "the longest row", advice="")
        elif clip:
            self._data = Clients([clip_rows(data, bound) for data in self._data])
            for state, kept in zip(self._state, self._data.kept_of, strict=True):
                state.kept = kept  # nothing derived from the longer rows
        else:
            for i, data in enumerate(self._data):
                require_rows(data, i, bound)

    def broadcast(self, message: Any, *, to: Sequence[int] | None = None) -> None:
        """Send `message` to all clients (or to those at the positions `to`)."""
        message = _narrow(message) if self._single else message
        receivers = range(len(self._data)) if to is None else to
        for position in receivers:
            self._inbox[position] = message
        self.ledger.download(message, len(receivers))

    def gather(self, step: Step, *, of: Sequence[int] | None = None) -> list[Any]:
        """Run `step` on all clients (or those at the positions `of`) and upload their replies.

        Returns
        -------
        list
            One reply per participation, in the order of `of`. A client that is named twice takes
            part twice, one time after the other.
        """
        replies = self._replies(step, of)
        self.ledger.upload(replies)
        if self._transcript is not None:
            self._show(self._transcript, step, of, replies)
        return replies

    def sum(self, step: Step, *, of: Sequence[int] | None = None) -> Any:
        """Upload the replies of `step` and return their sum (what secure aggregation reveals)."""
        return self._total(step, of)

    def mean(self, step: Step, *, of: Sequence[int] | None = None) -> Any:
        """Upload the replies of `step` and return their plain mean."""
        return self._total(step, of) / len(self._data if of is None else of)

    def local(self, step: Step, *, of: Sequence[int] | None = None) -> None:
        """Run `step` on the clients without any communication; replies are dropped."""
        self._run(step, of)

    def observe(self, step: Step) -> list[Any]:
        """Look into the clients from outside the protocol: free, for evaluation and results."""
        return self._run(step, None)

    def client_state(self, name: str, *, of: Iterable[int] | None = None) -> list[Any]:
        """What clients (all, or those in `of`) hold under ``state.<name>``, seen from outside."""
        chosen = range(len(self._data)) if of is None else of
        return [getattr(self._state[i], name) for i in chosen]

    def _total(self, step: Step, of: Sequence[int] | None) -> Any:
        """Upload the replies of `step` and return their sum, by its twin if that is possible."""
        total, replies = self._at_once(step, of), None
        if total is None:
            replies = self._replies(step, of)
            self.ledger.upload(replies)
            total = reduce(np.add, replies)
        else:
            self._expose(range(len(self._data)))
            self.ledger.upload([total] * len(self._data))
        if self._transcript is not None:
            if self._transcript.sums_only:
                number, message = self.ledger.rounds, self._common_message(of)
                self._transcript.saw(number, [(None, message, total)])
            else:
                self._show(self._transcript, step, of, replies)
        return total

    def _at_once(self, step: Step, of: Sequence[int] | None) -> Any:
        """Sum of all clients' replies by the twin of `step`; None when it does not apply."""
        twin: Twin | None = getattr(step, "summed", None)
        if twin is None or not (of is None or sorted(of) == list(range(len(self._data)))):
            return None
        message = self._common_message(of)
        if message is None:
            return None
        total = twin(self._data, self._memory.setdefault(twin, SimpleNamespace()), message)
        return _narrow(total) if self._single else total

    def _common_message(self, of: Sequence[int] | None) -> Any:
        """Return the message that all participants hold; None when they hold different ones."""
        positions = range(len(self._data)) if of is None else of
        first = self._inbox[positions[0]]
        return first if all(self._inbox[i] is first for i in positions) else None

    def _show(
        self,
        observer: Observer,
        step: Step,
        of: Sequence[int] | None,
        replies: Sequence[Any] | None,
    ) -> None:
        """Show an upload; `replies` is None when only their sum has been computed."""
        positions = range(len(self._data)) if of is None else of
        watched = range(len(self._data)) if observer.clients is None else observer.clients
        seen = [i for i in positions if i in watched]
        if replies is None:  # the step is a pure function: its replies may be asked for again
            shown = list(zip(seen, self._replies(step, seen), strict=True))
        else:
            shown = [pair for pair in zip(positions, replies, strict=True) if pair[0] in watched]
        observer.saw(self.ledger.rounds, [(i, self._inbox[i], reply) for i, reply in shown])

    def _replies(self, step: Step, of: Sequence[int] | None) -> list[Any]:
        """Replies of `step`, to be uploaded: those that no mechanism has touched are noticed."""
        positions = range(len(self._data)) if of is None else of
        accounts = self.ledger.privacy.accounts if self.ledger.privacy is not None else []
        before = {i: accounts[i].events.total() for i in positions} if accounts else {}
        replies = self._run(step, of)
        if accounts and not getattr(step, "post_processing", False):
            told = {i for i, reply in zip(positions, replies, strict=True) if payload(reply)[0]}
            self._expose(i for i in told if accounts[i].events.total() == before[i])
        return [_narrow(reply) for reply in replies] if self._single else replies

    def _run(self, step: Step, of: Sequence[int] | None) -> list[Any]:
        positions = range(len(self._data)) if of is None else of

        def call(i: int) -> Any:
            return step(self._data[i], self._state[i], self._inbox[i])

        if self._threads == 1 or len(positions) == 1:
            return [call(i) for i in positions]
        # A client's state and stream are its own: it does its participations one after the other.
        times = Counter(positions)
        with ThreadPoolExecutor(self._threads) as pool:
            done = pool.map(lambda i: [call(i) for _ in range(times[i])], times)
            replies = {i: iter(calls) for i, calls in zip(times, done, strict=True)}
        return [next(replies[i]) for i in positions]

    def _expose(self, positions: Iterable[int]) -> None:
        """Take note of uploads that no mechanism has touched."""
        if self.ledger.privacy is not None:
            for i in positions:
                self.ledger.privacy.accounts[i].exposed = True


def check_clients(clients: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Check client matrices and return them as C-contiguous float arrays.

    Parameters
    ----------
    clients : sequence of array-like of shape (n_i, d)

    Returns
    -------
    list of ndarray of shape (n_i, d)
        float64 (float32 stays float32), C-contiguous; no copy where none is needed.

    Raises
    ------
    InputError
        When there is no client, a client is empty, not a 2-D numeric matrix, contains NaN or
        infinity, or does not have the number of features of the first client.
    """
    if isinstance(clients, np.ndarray) and clients.ndim == 2:
        raise InputError("clients must be a list of matrices; for one client pass [matrix]")
    checked: list[np.ndarray] = []
    for i, client in enumerate(clients):
        try:
            data = np.asarray(client)
        except ValueError as error:
            raise InputError(f"client {i} is not a matrix: {error}") from error
        if data.ndim != 2:
            raise InputError(
                f"client {i}: expected a 2-D (samples, features) array, got {data.ndim}-D"
            )
        if data.shape[0] == 0 or data.shape[1] == 0:
            raise InputError(
                f"client {i} is empty (shape {data.shape}); drop it or give it samples"
            )
        if data.dtype.kind not in "biuf":
            raise InputError(f"client {i}: dtype {data.dtype} is not numeric")
        if data.dtype != np.float32:
            data = data.astype(np.float64, copy=False)
        if not np.isfinite(data).all():
            row, column = np.argwhere(~np.isfinite(data))[0]
            raise InputError(f"client {i} has {data[row, column]} at row {row}, feature {column}")
        if checked and data.shape[1] != checked[0].shape[1]:
            raise InputError(
                f"client {i} has {data.shape[1]} features, client 0 has {checked[0].shape[1]}"
            )
        checked.append(np.ascontiguousarray(data))
    if not checked:
        raise InputError("a federation needs at least one client")
    return checked


def _narrow(message: Any) -> Any:
    """Return `message` with its floating-point numbers as float32."""
    if isinstance(message, np.ndarray) and message.dtype.kind == "f":
        return message.astype(np.float32, copy=False)
    if isinstance(message, float | np.floating):
        return np.float32(message)
    if isinstance(message, Mapping):
        return {key: _narrow(value) for key, value in message.items()}
    if isinstance(message, list | tuple):
        parts = [_narrow(part) for part in message]
        return type(message)(*parts) if hasattr(message, "_fields") else type(message)(parts)
    return message


def _child(root: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    """Child of `root` at a fixed key; unlike ``spawn`` it does not depend on earlier calls."""
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, *key))

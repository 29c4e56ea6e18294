"""The clients, the server, and the only road between them.

An algorithm talks to its clients through a `Federation` and through nothing else: it broadcasts a
message, and it gathers, sums or averages what a *client step* replies. A client step is a plain
function ``step(data, state, message) -> reply``; ``state`` stays with the client between rounds and
carries the client's own random generator as ``state.rng`` and, as ``state.kept``, what is derived
from its data alone and serves later runs on them, too. Every message is charged to the ledger, and
in a private run every noise (`Federation.protect`).

Where `labelled`, the data of a client are a `fedcore.problems.clients.Labelled` pair of samples and
labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from types import SimpleNamespace
from typing import Any, Protocol, TypeVar

import numpy as np

from fedcore.errors import InputError
from fedcore.federation.centring import centred, mean_of, sum_and_count
from fedcore.federation.ledger import Ledger, Shape, payload
from fedcore.federation.state import StackedState, State
from fedcore.privacy.mechanisms import Mechanisms, Privacy
from fedcore.privacy.noise import Source, Weakened
from fedcore.privacy.noise import stream as noise_stream
from fedcore.privacy.rows import clip_rows, require_norm, require_rows
from fedcore.problems.clients import Clients, Labelled, check_clients
from fedcore.seeds import SERVER, child, root_of
from fedcore.validation import require_at_least

Step = Callable[[Any, SimpleNamespace, Any], Any]
Twin = Callable[[Clients, SimpleNamespace, Any], Any]
AnyStep = TypeVar("AnyStep", bound=Step)


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


def stacked(step: AnyStep) -> AnyStep:
    """Declare that a client step also works on many clients of equal shape at once.

    Its data, the arrays in its state and its reply then have a leading axis of clients: one array
    operation in the place of ten thousand calls. So the step indexes axes from the end, uses
    neither ``state.rng`` nor ``state.privacy``, keeps nothing but arrays of equal shape in its
    state, and replies with one array. Plain and stacked form agree to rounding; which one is taken
    depends on the clients' shapes and messages alone.
    """
    step.stacked = True  # type: ignore[attr-defined]
    return step


class Observer(Protocol):
    """What watches the uploads; `fedcore.federation.transcript.Transcript` is one.

    Attributes
    ----------
    clients : sequence of int or None
        Positions of the watched clients; None for all.
    sums_only : bool
        Whether of a sum or mean only the total is seen.
    """

    clients: Sequence[int] | None
    sums_only: bool

    def on_upload(self, number: int, exchanges: Sequence[tuple[int | None, Any, Any]]) -> None:
        """Take note of one upload: (client or None for the total, its last message, its reply)."""


class Federation:
    """In-process federation of clients, each with its own data, state and random stream.

    Parameters
    ----------
    clients : sequence of ndarray of shape (n_i, d)
        One matrix per client, rows are samples.
    seed : int or numpy.random.SeedSequence
        Source of all randomness but the privacy noise. The stream of a client depends on its id
        alone, so neither the order of the clients nor the number of threads changes a draw.
    ids : sequence of int, optional
        Names of the clients in the seed's spawn keys; the default is 0, 1, 2, …
    threads : int, default=1
        Client steps that run at the same time.
    transcript : Observer, optional
        Is shown every upload, see `fedcore.federation.transcript`. It changes neither results nor
        ledger.
    check : bool, default=True
        False when the clients have passed `check_clients` already.
    bare_finish : bool, default=False
        Whether the caller will make an exchange without noise after the algorithm; `protect` then
        refuses.
    labelled : bool, default=False
        Hand the clients' labels to the steps, beside the samples.
    stack : bool, default=True
        Whether to use the stacked form of steps that have one; False is for tests and benchmarks.
    noise : numpy.random.SeedSequence or fedcore.privacy.noise.Weakened, optional
        Source of the privacy noise in a simulation, on which no guarantee rests; the default is the
        operating system's entropy, fresh for every client (see `fedcore.privacy.noise`).

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
        labelled: bool = False,
        stack: bool = True,
        noise: Source | None = None,
    ) -> None:
        checked = check_clients(clients) if check else clients
        self._data = checked if isinstance(checked, Clients) else Clients(checked)
        self._single = self._data.single
        ids = list(range(len(self._data))) if ids is None else list(ids)
        if len(ids) != len(self._data) or len(set(ids)) != len(ids):
            raise InputError(f"{len(self._data)} clients need as many distinct ids; got {ids}")
        require_at_least(1, threads=threads)
        root = root_of(seed)
        self.rng = np.random.default_rng(child(root, SERVER))
        self._state = [
            State(kept=kept, _root=root, _id=i)
            for i, kept in zip(ids, self._data.kept_of, strict=True)
        ]
        self._arrays: dict[str, np.ndarray] = {}  # of the clients' states, see StackedState
        self._labelled = labelled
        self._stack = stack and self._data.uniform and len(self._data) > 1
        self._inbox: list[Any] = [None] * len(self._data)
        self._threads = threads
        self._transcript = transcript
        self._noise = noise
        self._bare_finish = bare_finish
        self._mean: np.ndarray | None = None  # what `center` took off
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
        neighbours : {"replace_one", "add_or_remove_one", "zero_out_one", "change_entry"}
            Neighbouring relation, to which the sensitivities of all mechanisms refer.

        Raises
        ------
        InputError
            When an exchange without noise has been made or is to follow.
        """
        self.require_protectable()
        simulated = self._noise is not None
        weakened = self._noise.factor if isinstance(self._noise, Weakened) else None
        self.ledger.privacy = Privacy(
            len(self._data), delta, neighbours, simulated=simulated, weakened=weakened
        )
        accounts = self.ledger.privacy.accounts
        for state, account in zip(self._state, accounts, strict=True):
            state.privacy = Mechanisms(noise_stream(self._noise, state._id), account)

    @property
    def clients(self) -> Clients:
        """The clients' samples as they stand, seen from outside the protocol."""
        return self._data

    def center(self) -> np.ndarray:
        """Take the mean of all samples off every client's samples, in one round.

        A client uploads the sum of its samples and their number, d + 1 doubles whatever the
        precision of its data, and downloads the mean, d doubles. There is no noise on them: with
        plain sums the server learns the mean and the size of every client, with secure aggregation
        those of all together.

        Returns
        -------
        ndarray of shape (d,)
            The mean, in data units.

        Raises
        ------
        InputError
            After `protect` or another exchange, when rows have been reduced to factors, or when the
            sums overflow.
        """
        self.require_single_rows()
        if self.ledger.rounds or self.ledger.privacy is not None:
            raise InputError("center comes once, before the first upload, in a run without noise")
        replies = [sum_and_count(data) for data in self._data]
        self.ledger.upload(replies)
        total = reduce(np.add, replies)
        self._show_total(None, None, replies, total)
        self._mean = mean_of(total)
        self.ledger.download(self._mean, len(self._data))
        self._go_on_with([centred(data, self._mean) for data in self._data])
        return self._mean

    def require_protectable(self, *, center: bool = False) -> None:
        """Refuse a private run with an exchange without noise before or after it; see `protect`.

        Parameters
        ----------
        center : bool, default=False
            Whether `center` is to come before the run.

        Raises
        ------
        InputError
        """
        if self._bare_finish:
            raise InputError(
                "an exchange without noise is to follow this algorithm (FederatedPCA's last round) "
                "and would void its guarantee: use fedcore.run"
            )
        if center or self._mean is not None:
            crossing = "would cross" if self._mean is None else "has crossed"
            raise InputError(
                f"the mean of the samples {crossing} without noise, which voids the guarantee of "
                "this algorithm: take center=False, and subtract a mean that is public"
            )
        if self.ledger.rounds or self.ledger.privacy is not None:
            raise InputError("protect comes once, before the first upload")

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
            self._go_on_with([clip_rows(data, bound) for data in self._data])
        else:
            for i, data in enumerate(self._data):
                require_rows(data, i, bound)

    def require_single_rows(self) -> None:
        """Refuse clients whose rows have been reduced to factors; for methods that look at each.

        Raises
        ------
        InputError
        """
        if self._data.reduction is not None:
            raise InputError(
                "this method looks at single rows, and of these data only factors were kept: "
                "make the problem with reduce = false"
            )

    def broadcast(self, message: Any, *, to: Sequence[int] | None = None) -> None:
        """Send `message` to all clients (or to those at the positions `to`).

        What crosses is one copy for all: the server may go on with its own array. Clients get its
        arrays read-only, its lists and mappings each for itself.
        """
        message = _crossing(_narrow(message) if self._single else message)
        receivers = range(len(self._data)) if to is None else to
        for position in receivers:
            self._inbox[position] = message
        self.ledger.download(message, len(receivers))

    def gather(self, step: Step, *, of: Sequence[int] | None = None) -> Sequence[Any]:
        """Run `step` on all clients (or those at the positions `of`) and upload their replies.

        Returns
        -------
        list, or ndarray from a stacked step
            One reply per participation, in the order of `of`. A client that is named twice takes
            part twice, one time after the other.
        """
        replies = self._replies(step, of)
        self.ledger.upload(replies)
        if self._transcript is not None:
            self._show(self._transcript, step, of, replies)
        return replies

    def sum(self, step: Step, *, of: Sequence[int] | None = None) -> Any:
        """Upload the replies of `step` and return their sum (what secure aggregation reveals).

        Whole numbers and truth values add up in 64 bits, whatever type they crossed in.

        Raises
        ------
        InputError
            When replies differ in shape, or one is not an array of real numbers.
        """
        return self._total(step, of)

    def mean(self, step: Step, *, of: Sequence[int] | None = None) -> Any:
        """Upload the replies of `step` and return their plain mean; of what, see `sum`."""
        return self._total(step, of) / len(self._data if of is None else of)

    def local(self, step: Step, *, of: Sequence[int] | None = None) -> None:
        """Run `step` on the clients without any communication; replies are dropped."""
        self._run(step, of)

    def observe(self, step: Step) -> Sequence[Any]:
        """Look into the clients from outside the protocol: free, for evaluation and results."""
        return self._run(step, None)

    def client_state(self, name: str, *, of: Iterable[int] | None = None) -> Sequence[Any]:
        """What clients (all, or those in `of`) hold under ``state.<name>``, seen from outside.

        One item per client; not to be changed.
        """
        chosen = range(len(self._data)) if of is None else of
        if name in self._arrays:
            whole = self._arrays[name]
            return whole if of is None else whole[list(of)]  # type: ignore[return-value]
        return [getattr(self._state[i], name) for i in chosen]

    def _go_on_with(self, matrices: list[np.ndarray]) -> None:
        """Replace the clients' samples, and forget what was derived from those before."""
        self._data = Clients(matrices, labels=self._data.labels)
        for state, kept in zip(self._state, self._data.kept_of, strict=True):
            state.kept = kept

    def _total(self, step: Step, of: Sequence[int] | None) -> Any:
        """Upload the replies of `step` and return their sum, by its twin if that is possible."""
        total, replies = self._at_once(step, of), None
        if total is None:
            replies = self._replies(step, of)
            self.ledger.upload(replies)
            total = _added(replies, range(len(self._data)) if of is None else of)
        else:
            self._expose(step, range(len(self._data)))
            self.ledger.upload([total] * len(self._data))
        self._show_total(step, of, replies, total)
        return total

    def _show_total(
        self,
        step: Step | None,
        of: Sequence[int] | None,
        replies: Sequence[Any] | None,
        total: Any,
    ) -> None:
        """Show an upload of which the sum is asked for; see `_show`."""
        if self._transcript is None:
            return
        if self._transcript.sums_only:
            number, message = self.ledger.rounds, self._common_message(of)
            self._transcript.on_upload(number, [(None, message, total)])
        else:
            self._show(self._transcript, step, of, replies)

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

    def _run_stacked(self, step: Step, of: Sequence[int] | None) -> Sequence[Any]:
        """Run a stacked step once for all participants; they hold the same message."""
        rows = None if of is None else np.asarray(of, dtype=np.intp)
        data: Any = self._data.labelled_stack if self._labelled else self._data.stack
        if rows is not None:
            data = Labelled(*(part[rows] for part in data)) if self._labelled else data[rows]
        state: Any = StackedState(self._state, self._arrays, rows)
        return step(data, state, _opened(self._inbox[0 if of is None else of[0]]))

    def _alike(self, positions: Sequence[int]) -> bool:
        """Whether these are different clients that all hold the same message."""
        if not positions or len(set(positions)) < len(positions):
            return False
        first = self._inbox[positions[0]]
        return all(self._inbox[i] is first for i in positions)

    def _common_message(self, of: Sequence[int] | None) -> Any:
        """Return the message that all participants hold; None when they hold different ones."""
        positions = range(len(self._data)) if of is None else of
        first = self._inbox[positions[0]]
        return first if all(self._inbox[i] is first for i in positions) else None

    def _show(
        self,
        observer: Observer,
        step: Step | None,
        of: Sequence[int] | None,
        replies: Sequence[Any] | None,
    ) -> None:
        """Show an upload; `replies` or, when only their sum has been computed, `step` is given."""
        positions = range(len(self._data)) if of is None else of
        watched = range(len(self._data)) if observer.clients is None else observer.clients
        seen = [i for i in positions if i in watched]
        if replies is None:  # the step is a pure function: its replies may be asked for again
            assert step is not None
            shown = list(zip(seen, self._replies(step, seen), strict=True))
        else:
            shown = [pair for pair in zip(positions, replies, strict=True) if pair[0] in watched]
        observer.on_upload(self.ledger.rounds, [(i, self._inbox[i], reply) for i, reply in shown])

    def _replies(self, step: Step, of: Sequence[int] | None) -> Sequence[Any]:
        """Replies of `step`, to be uploaded: what no mechanism has returned is noticed."""
        positions = range(len(self._data)) if of is None else of
        accounts = self.ledger.privacy.accounts if self.ledger.privacy is not None else []
        before = {i: accounts[i].events.total() for i in positions} if accounts else {}
        replies = self._run(step, of)
        if accounts and not getattr(step, "post_processing", False):
            self._expose(step, (
                i for i, reply in zip(positions, replies, strict=True) if payload(reply)[0]
                and not (accounts[i].events.total() > before[i]
                         and self._state[i].privacy.covers(reply))
            ))  # fmt: skip
        if not self._single:
            return replies
        return _narrow(replies if isinstance(replies, np.ndarray) else list(replies))

    def _run(self, step: Step, of: Sequence[int] | None) -> Sequence[Any]:
        positions = range(len(self._data)) if of is None else of
        if self.ledger.privacy is not None:
            for i in positions:
                self._state[i].privacy.released.clear()
        if self._stack and getattr(step, "stacked", False) and self._alike(positions):
            return self._run_stacked(step, of)
        self._arrays.clear()  # the step may set the states anew; they hold what the arrays did

        def call(i: int) -> Any:
            data = self._data.labelled(i) if self._labelled else self._data[i]
            return step(data, self._state[i], _opened(self._inbox[i]))

        if self._threads == 1 or len(positions) == 1:
            return [call(i) for i in positions]
        # A client's state and stream are its own: it does its participations one after the other.
        times = Counter(positions)
        with ThreadPoolExecutor(self._threads) as pool:
            done = pool.map(lambda i: [call(i) for _ in range(times[i])], times)
            replies = {i: iter(calls) for i, calls in zip(times, done, strict=True)}
        return [next(replies[i]) for i in positions]

    def _expose(self, step: Step, positions: Iterable[int]) -> None:
        """Take note of uploads that no mechanism has touched."""
        if self.ledger.privacy is not None:
            named = getattr(step, "func", step)  # a step with arguments bound is named by itself
            self.ledger.privacy.expose(positions, getattr(named, "__name__", "a step"))


def _narrow(message: Any) -> Any:
    """Return `message` with its floating-point numbers as float32."""
    if isinstance(message, np.ndarray) and message.dtype.kind == "f":
        return message.astype(np.float32, copy=False)
    if isinstance(message, float | np.floating):
        return np.float32(message)
    return _rebuilt(message, _narrow)


def _crossing(message: Any) -> Any:
    """Return a copy of `message` whose arrays are read-only."""
    if isinstance(message, np.ndarray):
        copy = message.copy(order="K")
        copy.flags.writeable = False
        return copy
    return _rebuilt(message, _crossing)


def _opened(message: Any) -> Any:
    """Return `message` in lists and mappings of its own, with the same arrays."""
    return _rebuilt(message, _opened)


def _rebuilt(message: Any, change: Callable[[Any], Any]) -> Any:
    """Return `message` with every part of its lists, tuples and mappings changed."""
    if isinstance(message, Mapping):
        return {key: change(value) for key, value in message.items()}
    if isinstance(message, list | tuple):
        parts = [change(part) for part in message]
        return type(message)(*parts) if hasattr(message, "_fields") else type(message)(parts)
    return message


def _added(replies: Sequence[Any], positions: Sequence[int]) -> Any:
    """Sum of replies of one shape; whole numbers in 64 bits.

    Raises
    ------
    InputError
        For replies that do not fit; broadcasting would make a plausible total of many of them.
    """
    if not positions:
        raise InputError("a sum or mean needs at least one client; none takes part")
    if isinstance(replies, np.ndarray):  # from a stacked step
        if len(replies) != len(positions):
            raise InputError(
                f"a stacked step replied with {len(replies)} rows for {len(positions)} clients"
            )
        return _addend(replies, positions[0]).sum(axis=0)
    first, *others = (_addend(reply, i) for i, reply in zip(positions, replies, strict=True))
    for i, other in zip(positions[1:], others, strict=True):
        if other.shape != first.shape:
            raise InputError(
                f"client {positions[0]} replied with shape {first.shape} and client {i} with "
                f"{other.shape}: replies to sum and mean have one shape"
            )
    return reduce(np.add, others, first) if others else first.copy()[()]


def _addend(reply: Any, client: int) -> np.ndarray:
    """Return `reply` as an array that can be added without overflow of short integers."""
    try:
        array = np.asarray(reply)
    except ValueError:  # of parts of different lengths
        array = np.asarray(None)
    if array.dtype.kind not in "biuf":
        what = f"{array.dtype} numbers" if array.dtype.kind == "c" else f"a {type(reply).__name__}"
        raise InputError(
            f"client {client} replied with {what}: sum and mean take one array of real numbers "
            "from each client; gather takes anything"
        )
    wide = {"b": np.int64, "i": np.int64, "u": np.uint64}.get(array.dtype.kind, array.dtype)
    return array.astype(wide, copy=False)

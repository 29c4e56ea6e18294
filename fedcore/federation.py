"""The clients, the server, and the only road between them.

An algorithm talks to its clients through a `Federation` and through nothing else: it broadcasts a
message, and it gathers, sums or averages what a *client step* replies. A client step is a plain
function ``step(data, state, message) -> reply``; ``state`` stays with the client between rounds and
carries the client's own random generator as ``state.rng``. Every message is charged to the ledger.

Where `labelled`, the data of a client are a `fedcore.clients.Labelled` pair of samples and labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, reduce
from types import SimpleNamespace
from typing import Any, Protocol, TypeVar

import numpy as np

from fedcore.checks import require_at_least
from fedcore.clients import Clients, Labelled
from fedcore.errors import InputError
from fedcore.ledger import Ledger, Shape

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


def stacked(step: AnyStep) -> AnyStep:
    """Declare that a client step also works on many clients of equal shape at once.

    Its data, the arrays in its state and its reply then have a leading axis of clients: one array
    operation in the place of ten thousand calls. So the step indexes axes from the end, does not
    draw from ``state.rng``, keeps nothing but arrays of equal shape in its state, and replies with
    one array. Plain and stacked form agree to rounding; which one is taken depends on the clients'
    shapes and messages alone.
    """
    step.stacked = True  # type: ignore[attr-defined]
    return step


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
    labelled : bool, default=False
        Hand the clients' labels to the steps, beside the samples.
    stack : bool, default=True
        Whether to use the stacked form of steps that have one; False is for tests and benchmarks.

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
        labelled: bool = False,
        stack: bool = True,
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
        self._state = [_State(_root=root, _id=i) for i in ids]
        self._arrays: dict[str, np.ndarray] = {}  # of the clients' states, see _StackedState
        self._labelled = labelled
        self._stack = stack and self._data.uniform and len(self._data) > 1
        self._inbox: list[Any] = [None] * len(self._data)
        self._threads = threads
        self._transcript = transcript
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

    def broadcast(self, message: Any, *, to: Sequence[int] | None = None) -> None:
        """Send `message` to all clients (or to those at the positions `to`)."""
        message = _narrow(message) if self._single else message
        receivers = range(len(self._data)) if to is None else to
        for position in receivers:
            self._inbox[position] = message
        self.ledger.download(message, len(receivers))

    def gather(self, step: Step, *, of: Sequence[int] | None = None) -> Sequence[Any]:
        """Run `step` on all clients (or those at the positions `of`) and upload their replies.

        Returns
        -------
        list, or ndarray from a stacked step
            One reply per participating client, in the order of the clients.
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

    def observe(self, step: Step) -> Sequence[Any]:
        """Look into the clients from outside the protocol: free, for evaluation and results."""
        return self._run(step, None)

    def client_state(self, name: str) -> Sequence[Any]:
        """What every client holds under ``state.<name>``, seen from outside the protocol.

        One item per client; not to be changed.
        """
        if name in self._arrays:
            return self._arrays[name]  # type: ignore[return-value]
        return [getattr(state, name) for state in self._state]

    def _total(self, step: Step, of: Sequence[int] | None) -> Any:
        """Upload the replies of `step` and return their sum, by its twin if that is possible."""
        total, replies = self._at_once(step, of), None
        if total is None:
            replies = self._replies(step, of)
            self.ledger.upload(replies)
            if isinstance(replies, np.ndarray):
                total = replies.sum(axis=0)
            else:
                total = reduce(np.add, replies)
        else:
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

    def _run_stacked(self, step: Step, of: Sequence[int] | None) -> Sequence[Any]:
        """Run a stacked step once for all participants; they hold the same message."""
        rows = None if of is None else np.asarray(of, dtype=np.intp)
        data: Any = self._data.labelled_stack if self._labelled else self._data.stack
        if rows is not None:
            data = Labelled(*(part[rows] for part in data)) if self._labelled else data[rows]
        state: Any = _StackedState(self._state, self._arrays, rows)
        return step(data, state, self._inbox[0 if of is None else of[0]])

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
        step: Step,
        of: Sequence[int] | None,
        replies: Sequence[Any] | None,
    ) -> None:
        """Show an upload; `replies` is None when only their sum has been computed."""
        positions = range(len(self._data)) if of is None else of
        watched = range(len(self._data)) if observer.clients is None else observer.clients
        seen = [i for i in positions if i in watched]
        if replies is None:  # the step is a pure function: its replies may be asked for again
            shown = dict(zip(seen, self._replies(step, seen), strict=True))
        else:
            shown = dict(zip(positions, replies, strict=True))
        observer.saw(self.ledger.rounds, [(i, self._inbox[i], shown[i]) for i in seen])

    def _replies(self, step: Step, of: Sequence[int] | None) -> Sequence[Any]:
        replies = self._run(step, of)
        if not self._single:
            return replies
        return _narrow(replies if isinstance(replies, np.ndarray) else list(replies))

    def _run(self, step: Step, of: Sequence[int] | None) -> Sequence[Any]:
        positions = range(len(self._data)) if of is None else of
        if self._stack and getattr(step, "stacked", False) and self._alike(positions):
            return self._run_stacked(step, of)
        self._arrays.clear()  # the step may set the states anew; they hold what the arrays did

        def call(i: int) -> Any:
            data = self._data.labelled(i) if self._labelled else self._data[i]
            return step(data, self._state[i], self._inbox[i])

        if self._threads == 1 or len(positions) == 1:
            return [call(i) for i in positions]
        with ThreadPoolExecutor(self._threads) as pool:
            return list(pool.map(call, positions))


class _State(SimpleNamespace):
    """What stays with one client; its random stream is made when it is first asked for."""

    @cached_property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(_child(self._root, CLIENT, self._id))


class _StackedState:
    """State of the clients at `rows` (None: all): each attribute one array, a row per client.

    The arrays last from call to call. Each client's own state holds views of its rows, so that
    plain steps see what stacked steps have written; a plain step drops the arrays, not what they
    hold.
    """

    def __init__(
        self, states: Sequence[SimpleNamespace], arrays: dict[str, np.ndarray], rows: Any
    ) -> None:
        self.__dict__.update(_states=states, _arrays=arrays, _rows=rows)

    def __getattr__(self, name: str) -> np.ndarray:
        if name not in self._arrays:
            self._share(name, np.stack([getattr(state, name) for state in self._states]))
        whole = self._arrays[name]
        return whole if self._rows is None else whole[self._rows]

    def __setattr__(self, name: str, value: np.ndarray) -> None:
        if self._rows is not None:
            if name not in self._arrays:
                getattr(self, name)  # all clients must have it already
            self._arrays[name][self._rows] = value
        elif name in self._arrays and self._arrays[name].shape == value.shape:
            self._arrays[name][...] = value
        else:
            self._share(name, np.array(value))

    def _share(self, name: str, whole: np.ndarray) -> None:
        self._arrays[name] = whole
        for i, state in enumerate(self._states):
            setattr(state, name, whole[i, ...])


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


def check_labels(labels: Sequence[np.ndarray], clients: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Check the labels of clients and return them in the precision of the clients' samples.

    Parameters
    ----------
    labels : sequence of array-like of shape (n_i,)
    clients : sequence of ndarray of shape (n_i, d)
        As `check_clients` returns them.

    Raises
    ------
    InputError
        When a client's labels are missing, too few or too many, not numbers, or not finite.
    """
    if len(labels) != len(clients):
        raise InputError(
            f"{len(clients)} clients need as many vectors of labels; got {len(labels)}"
        )
    checked = []
    for i, (given, client) in enumerate(zip(labels, clients, strict=True)):
        try:
            y = np.asarray(given)
        except ValueError as error:
            raise InputError(f"the labels of client {i} are not a vector: {error}") from error
        if y.shape != (len(client),):
            raise InputError(
                f"client {i} has {len(client)} samples and labels of shape {y.shape}; "
                "give it one label per sample"
            )
        if y.dtype.kind not in "biuf":
            raise InputError(f"the labels of client {i}: dtype {y.dtype} is not numeric")
        if not np.isfinite(y).all():
            row = int(np.argmin(np.isfinite(y)))
            raise InputError(f"the labels of client {i} have {y[row]} at row {row}")
        checked.append(y.astype(client.dtype))
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

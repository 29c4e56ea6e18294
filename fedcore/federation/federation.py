"""The federation: a server, its clients, and the messages between them.

An algorithm reaches its clients only through a `Federation`. It broadcasts messages, and it
gathers, sums or averages the replies of a *client step*, a function
``step(data, state, message) -> reply``. ``state`` stays with the client between rounds.
``state.rng`` is the client's random generator; ``state.kept`` holds what depends on the client's
data alone, and later runs on the same data find it there. The ledger is charged for every message,
and in a private run for every release of noisy values (`Federation.protect`). A `Transport` carries
the messages; without another engine all clients are in this process.

With ``labelled=True`` a step's ``data`` are a `fedcore.problems.clients.Labelled` pair of samples
and labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from typing import Any, ClassVar

import numpy as np

from fedcore.arrays import as_array, check_matrices
from fedcore.errors import InputError
from fedcore.federation import messages
from fedcore.federation.centring import (
    mean_of,
    squares_of_features,
    sum_and_count,
    sum_count_and_far,
)
from fedcore.federation.engines.in_process import InProcess
from fedcore.federation.execution import Step as Step
from fedcore.federation.execution import stacked as stacked
from fedcore.federation.ledger import Ledger, Shape
from fedcore.federation.site import samples_of
from fedcore.federation.state import State
from fedcore.federation.transcript import Transcript
from fedcore.federation.transport import (
    BoundRows,
    Centre,
    Do,
    Engine,
    Read,
    Scale,
    Setup,
)
from fedcore.privacy.bounded_rows import require_norm
from fedcore.privacy.mechanisms import Privacy
from fedcore.privacy.noise import Source, Weakened
from fedcore.problems.clients import Clients
from fedcore.rowspace import Frame
from fedcore.seeds import SERVER, child, root_of
from fedcore.words import counted


class Federation:
    """Federation of clients, each with its own data, state and random stream.

    Parameters
    ----------
    clients : sequence of ndarray of shape (n_i, d)
        One matrix per client, rows are samples.
    seed : int or numpy.random.SeedSequence
        Source of all randomness except the privacy noise. The stream of a client depends on the
        seed and the client's id, and not on the order of the clients.
    ids : sequence of int, optional
        Ids of the clients, which select their random streams; the default is 0, 1, 2, …
    transcript : Transcript, optional
        Records every upload. It changes neither results nor ledger.
    check : bool, default=True
        False when the clients have passed `check_matrices` already.
    labelled : bool, default=False
        Whether steps get the clients' labels with the samples.
    noise : numpy.random.SeedSequence or fedcore.privacy.noise.Weakened, optional
        Reproducible source of the privacy noise, for simulations only: a run with it gives no
        privacy. By default every client draws fresh entropy from the operating system (see
        `fedcore.privacy.noise`).
    engine : callable, optional
        ``setup -> Transport``; the default is `Federation.engine`, all clients in this process.

    Raises
    ------
    InputError
        For clients that `check_matrices` refuses, ids that are not distinct or not as many as
        clients, or a transcript that watches clients that do not exist.

    Notes
    -----
    When all clients hold float32 data, every floating-point number is sent as float32, in half the
    bytes; otherwise messages are sent as they are.

    Attributes
    ----------
    ledger : Ledger
        Messages sent so far.
    rng : numpy.random.Generator
        The server's random stream.
    once : callable
        ``once(job)`` calls ``job()`` once for the whole run and returns its value: over MPI rank 0
        calls it, and all ranks get the value. A server must use ``once`` for decisions that depend
        on a clock, on memory or on chance other than `rng`. `job` may call `observe` and
        `client_state`, but begin no other exchange.
    shape : Shape
        Number of clients, samples (of all clients) and features.
    """

    engine: ClassVar[Engine] = InProcess

    def __init__(
        self,
        clients: Sequence[np.ndarray],
        seed: int | np.random.SeedSequence = 0,
        *,
        ids: Sequence[int] | None = None,
        transcript: Transcript | None = None,
        check: bool = True,
        labelled: bool = False,
        noise: Source | None = None,
        engine: Engine | None = None,
    ) -> None:
        checked = check_matrices(clients) if check else clients
        data = checked if isinstance(checked, Clients) else Clients(checked)
        ids = list(range(len(data))) if ids is None else np.ravel(as_array(ids, "ids")).tolist()
        if len(ids) != len(data) or len(set(ids)) != len(ids):
            raise InputError(
                f"one distinct id is needed for each of {counted(len(data), 'client')}; got {ids}"
            )
        if transcript is not None and not isinstance(transcript, Transcript):
            raise InputError(f"transcript must be a Transcript, got {transcript!r}")
        watched = None if transcript is None else transcript.clients
        if watched is not None and not set(watched) <= set(range(len(data))):
            raise InputError(f"cannot watch clients {list(watched)} of {len(data)}")
        apart = transcript is not None and not transcript.sums_only
        setup = Setup(data, root_of(seed), ids, labelled, noise, apart)
        self._transport = (engine or type(self).engine)(setup)
        self.once = self._transport.once
        self.rng = np.random.default_rng(child(self._transport.root, SERVER))
        self._everyone = range(len(data))
        self._inbox: list[Any] | None = None if transcript is None else [None] * len(data)
        self._single = data.single
        self._transcript = transcript
        self._noise = noise
        self.ledger = Ledger()
        self.shape = Shape(len(data), data.n_samples, data.n_features)

    def protect(self, *, delta: float, neighbours: str) -> None:
        """Start the privacy account: clients get ``state.privacy``, the ledger an ε.

        Call it before the first upload; see `fedcore.privacy.mechanisms`.

        Parameters
        ----------
        delta : float
            δ at which ε is stated.
        neighbours : {"replace_one", "add_or_remove_one", "zero_out_one", "change_entry"}
            Neighbouring relation of all mechanisms' sensitivities.

        Raises
        ------
        InputError
            On a second call with other terms, or after an upload, because that upload had no noise;
            `center` uploads, too.
        """
        own = self.ledger.privacy
        if own is not None and (own.delta, own.neighbours) == (delta, neighbours):
            return  # an exchange before the algorithm has called it
        if self.ledger.rounds or self.ledger.privacy is not None:
            raise InputError(
                "protect comes once, before the first upload; center makes one: take center=False, "
                "and subtract a public mean"
            )
        simulated = self._noise is not None
        weakened = self._noise.factor if isinstance(self._noise, Weakened) else None
        self.ledger.privacy = Privacy(
            self.shape.n_clients, delta, neighbours, simulated=simulated, weakened=weakened
        )
        self._transport.protect()
        self.ledger.privacy.accounts = self._transport.accounts

    @property
    def clients(self) -> Clients:
        """The clients' current samples, read outside the protocol."""
        return self._transport.clients

    def center(self) -> np.ndarray:
        """Subtract the mean of all samples from every client's samples, in one round or two.

        A client uploads the sum of its samples, their number, and how many of its features have a
        mean above 2²⁰ times their standard deviation, d + 2 doubles at every precision of its data.
        It downloads the mean, d doubles. If a client has such a feature, as every client of one
        sample has, the mean that rounding has left is removed in a second round: d + 1 doubles up
        and d down. No noise is added: with plain sums the server learns these numbers of every
        client, with secure aggregation only those of all clients together.

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
        total = self._sum_in_double(sum_count_and_far)
        mean = mean_of(total[:-1])
        self._subtract(mean)
        if total[-1]:
            rest = mean_of(self._sum_in_double(sum_and_count))
            self._subtract(rest)
            mean = mean + rest
        return mean

    def scale(self, mean: np.ndarray) -> np.ndarray:
        """Divide every feature of all clients by the root of its mean square, in one round.

        A client uploads the sum of the squares of every feature, d doubles, and downloads the
        scales, again d doubles; no noise is added. The divisor is the number of samples, as in
        scikit-learn's StandardScaler.

        Parameters
        ----------
        mean : ndarray of shape (d,)
            What `center` has subtracted, or zeros. With it, a constant feature is recognised: only
            the rounding error of its mean is left.

        Returns
        -------
        ndarray of shape (d,)
            The scales, in data units; 1 for a constant feature.
        """
        total = self._sum_in_double(squares_of_features)
        rounding = np.finfo(np.float32 if self._single else np.float64).eps * np.abs(mean)
        found = np.sqrt(total / self.shape.n_samples)
        scales = np.where(found > 10 * rounding, found, 1.0)
        self.ledger.download(scales, self.shape.n_clients)
        self._transport.change(Scale(scales))
        return scales

    def standardise(self, mean: np.ndarray, scales: np.ndarray) -> None:
        """Let all clients subtract a mean and divide by scales that they know; nothing is sent.

        Parameters
        ----------
        mean, scales : ndarray of shape (n_features,)
            In data units.
        """
        self._transport.change(Centre(mean))
        self._transport.change(Scale(scales))

    def _sum_in_double(self, number: Callable[[Any], np.ndarray]) -> np.ndarray:
        """Upload a function of each client's samples, in double precision; return the sum."""
        step = partial(_of_samples, number)
        replies = self._transport.ask(Do(step, "upload"), self._everyone)
        self.ledger.upload(replies)
        total: np.ndarray = reduce(np.add, replies)
        self._show(None, self._everyone, replies, total)
        return total

    def _subtract(self, mean: np.ndarray) -> None:
        """Download a mean, which clients subtract."""
        self.ledger.download(mean, self.shape.n_clients)
        self._transport.change(Centre(mean))

    def bound_rows(self, bound: float = 1.0, *, clip: bool = False) -> None:
        """Make sure that every row has norm at most `bound`, as sensitivities assume.

        With `clip`, clients scale longer rows to norm `bound`. Without `clip`, or if rows have been
        reduced to factors, a longer row is an error. The bound itself never comes from data.

        Parameters
        ----------
        bound : float, default=1
            In data units.
        clip : bool, default=False

        Raises
        ------
        InputError
            For a longer row that cannot or may not be clipped.
        """
        reduction = self.clients.reduction
        if reduction is not None:
            require_norm(reduction.largest_row, bound, "the longest row", advice="")
        else:
            self._transport.change(BoundRows(bound, clip))

    def require_single_rows(self) -> None:
        """Refuse clients whose rows were reduced to factors, for methods that read single rows.

        Raises
        ------
        InputError
        """
        if self.clients.reduction is not None:
            raise InputError(
                "this method reads single rows, and these data were reduced to factors: "
                "make the problem with reduce = false"
            )

    def broadcast(self, message: Any, *, to: Sequence[int] | None = None) -> None:
        """Send a message to the clients, whose next steps get it as their third argument.

        All clients share one copy, so the server may change its own arrays afterwards. Clients get
        read-only arrays, in lists and mappings of their own.

        Parameters
        ----------
        message : array, number, text, or a list or mapping of them
            What is sent. The ledger counts it once for each receiver.
        to : sequence of int, optional
            Positions of the clients that get it, from 0; all clients by default.

        Raises
        ------
        TypeError
            For a message that the ledger cannot count, see `fedcore.federation.ledger.payload`.
        """
        message = messages.read_only(messages.narrow(message) if self._single else message)
        receivers = self._positions(to)
        self._transport.hold(message, receivers)
        if self._inbox is not None:
            for position in receivers:
                self._inbox[position] = message
        self.ledger.download(message, len(receivers))

    def frame(self, start: np.ndarray) -> Frame | None:
        """Return coordinates in which blocks that begin with `start` cost little, if they exist.

        With such coordinates, `broadcast` takes a `fedcore.rowspace.Block`, and a `sum` of
        `fedcore.parts.gram_products.gram_product` returns such a block. The coordinates exist if
        the clients are wide and in this process, and nobody reads the clients' single replies. The
        ledger counts the same numbers as without them.

        Parameters
        ----------
        start : ndarray of shape (d, r)

        Returns
        -------
        fedcore.rowspace.Frame or None
        """
        engine, alone = self._transport, self._transcript is None
        return engine.frame(start) if alone and isinstance(engine, InProcess) else None

    @property
    def at_once(self) -> bool:
        """Whether the engine may use the samples of all clients at once, in place of steps."""
        return isinstance(self._transport, InProcess) and not self._transport.plain

    def gather(self, step: Step, *, of: Sequence[int] | None = None) -> Sequence[Any]:
        """Run a step at each client, and upload the replies in one round.

        The server gets copies, and may write into them.

        Parameters
        ----------
        step : callable
            ``(data, state, message) -> reply``: the client's rows of shape (n_i, n_features), its
            own memory, and the message that it got last. The ledger counts the reply.
        of : sequence of int, optional
            Positions of the clients that take part, from 0; all clients by default.

        Returns
        -------
        list, or ndarray from a stacked step
            One reply per participation, in the order of `of`. A client that occurs twice runs the
            step twice in succession.

        Raises
        ------
        TypeError
            For a reply that the ledger cannot count, see `fedcore.federation.ledger.payload`.
        """
        positions = self._positions(of)
        replies = messages.copied(self._transport.ask(self._upload(step), positions))
        self.ledger.upload(replies)
        self._show(step, positions, replies)
        return replies

    def sum(self, step: Step, *, of: Sequence[int] | None = None) -> Any:
        """Run a step at each client, and return the sum of the replies in one round.

        With secure aggregation the server sees only this sum. Integers and booleans add up in 64
        bits.

        Parameters
        ----------
        step : callable
            See `gather`; its reply is a number or an array, of the same shape at each client.
        of : sequence of int, optional
            Positions of the clients that take part, from 0; all clients by default.

        Returns
        -------
        ndarray or number
            In the shape of one reply.

        Raises
        ------
        InputError
            When no client takes part, replies differ in shape, or one is not an array of real
            numbers.
        """
        positions = self._positions(of)
        found, replies = self._transport.total(self._upload(step), positions), None
        if found is None:
            replies = self._transport.ask(self._upload(step), positions)
            self.ledger.upload(replies)
            total = messages.added(replies, positions)
        else:
            total = found.value
            self.ledger.upload_total(found.scalars, found.size)
        self._show(step, positions, replies, total)
        return total

    def mean(self, step: Step, *, of: Sequence[int] | None = None) -> Any:
        """Run a step at each client, and return the unweighted mean of the replies.

        Parameters
        ----------
        step, of
            See `sum`.

        Returns
        -------
        ndarray or number
            In the shape of one reply.
        """
        return self.sum(step, of=of) / len(self._positions(of))

    def local(self, step: Step, *, of: Sequence[int] | None = None) -> None:
        """Run `step` on the clients without communication; replies are dropped.

        Parameters
        ----------
        step : callable
            See `gather`.
        of : sequence of int, optional
            Positions of the clients that run it, from 0; all clients by default.
        """
        self._transport.ask(Do(step, "none"), self._positions(of))

    def observe(self, step: Step, *message: Any) -> Sequence[Any]:
        """Return replies of all clients outside the protocol, uncharged, for evaluation only.

        Parameters
        ----------
        step : callable
            See `gather`.
        *message : object
            Message that the step gets in place of the message that its client holds.

        Returns
        -------
        sequence
            One reply per client.
        """
        return self._transport.ask(Do(step, "look", message=message), self._everyone)

    def client_state(self, name: str, *, of: Iterable[int] | None = None) -> Sequence[Any]:
        """Return ``state.<name>`` of the clients, read outside the protocol.

        Parameters
        ----------
        name : str
        of : iterable of int, optional
            Positions of the clients, from 0; all clients by default.

        Returns
        -------
        sequence
            One item per client. Do not write into the items.
        """
        return self._transport.ask(Read(name), self._positions(of))

    def client_states(self) -> Sequence[State]:
        """Return all clients' states outside the protocol, for checkpoints only.

        Returns
        -------
        sequence of State
        """
        return self._transport.states

    def _positions(self, of: Any) -> Any:
        """Return `of`, an array as a list (its comparisons give arrays); None means all clients."""
        if of is None:
            return self._everyone
        return of.tolist() if isinstance(of, np.ndarray) else of

    def _show(
        self,
        step: Step | None,
        positions: Sequence[int],
        replies: Sequence[Any] | None,
        total: Any = None,
    ) -> None:
        """Show an upload to the transcript; `total` is the sum of the replies, if taken."""
        transcript, inbox = self._transcript, self._inbox
        if transcript is None or inbox is None:
            return
        exchanges: list[tuple[int | None, Any, Any]]
        if total is not None and transcript.sums_only:
            first = inbox[positions[0]]
            common = first if all(inbox[i] is first for i in positions) else None
            exchanges = [(None, common, total)]
        else:
            watched = self._everyone if transcript.clients is None else transcript.clients
            if replies is None:  # a `summed` step is a pure function: run it again
                assert step is not None
                positions = [i for i in positions if i in watched]
                replies = self._transport.ask(self._upload(step), positions)
            pairs = zip(positions, replies, strict=True)
            exchanges = [(i, inbox[i], reply) for i, reply in pairs if i in watched]
        transcript.on_upload(self.ledger.rounds, exchanges)

    def _upload(self, step: Step) -> Do:
        return Do(step, "upload", self._single)


def _of_samples(number: Callable[[Any], Any], data: Any, state: State, message: Any) -> Any:
    return number(samples_of(data))

"""The federation, which carries all messages between a server and its clients.

An algorithm reaches its clients only through a `Federation`. The federation broadcasts messages,
and gathers, sums or averages replies. Each reply comes from a *client step*, a function
``step(data, state, message) -> reply``. The ``state`` stays with the client between rounds. The
client's random generator is ``state.rng``. Values that depend on the client's data alone are in
``state.kept``, where later runs on the same data find them. The ledger counts the traffic of every
message and, in a private run, the privacy loss of every release of noisy values
(`Federation.protect`). By default, all clients are in this process.

If a federation is made with ``Federation(…, labelled=True)``, the ``data`` of every client step
are a `fedcore.problems.clients.Labelled`, a pair of samples and labels.
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
from fedcore.federation.ledger import Ledger, Shape, payload
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
from fedcore.validation import POSITIVE, require_valid
from fedcore.words import counted


class Federation:
    """A server and its clients; each client has its own data, state and random stream.

    Parameters
    ----------
    clients : sequence of ndarray of shape (n_i, d)
        One matrix per client, with samples as rows.
    seed : int or numpy.random.SeedSequence
        Source of all randomness except the privacy noise. A client's random stream depends on the
        seed and the client's id, but not on the order of the clients.
    ids : sequence of int, optional
        Ids of the clients, which select their random streams; the default is 0, 1, 2, …
    transcript : Transcript, optional
        Object that records every upload, for privacy audits. It changes neither results nor ledger.
    check : bool, default=True
        Whether to check the clients by `check_matrices`.
    labelled : bool, default=False
        Whether client steps get the labels together with the samples.
    noise : numpy.random.SeedSequence or fedcore.privacy.noise.Weakened, optional
        Reproducible source of the privacy noise, for simulations only. Reproducible noise gives no
        privacy. By default every client draws fresh entropy from the operating system (see
        `fedcore.privacy.noise`).
    engine : callable, optional
        Function that takes a `fedcore.federation.transport.Setup` and returns a `Transport`. The
        default is `Federation.engine`, which keeps all clients in this process.

    Raises
    ------
    InputError
        If `check_matrices` refuses the clients, if the ids are not distinct or not one per client,
        or if the transcript watches a client that does not exist.

    Notes
    -----
    If all clients hold float32 data, every floating-point number is sent as float32, in half the
    bytes of float64. Otherwise, every number is sent in its own precision.

    Attributes
    ----------
    ledger : Ledger
        Totals of the messages sent so far.
    rng : numpy.random.Generator
        The server's random stream.
    once : callable
        The call ``once(job)`` returns ``job()``. Over MPI, only rank 0 calls the function `job`,
        and all ranks get its value. An algorithm must use ``once`` for decisions of the server that
        depend on time, on memory, or on random numbers other than `rng`. The job may call `observe`
        and `client_state`, but must begin no other exchange.
    shape : Shape
        Numbers of clients, of all clients' samples, and of features.
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
                f"ids must be distinct, one for each of {counted(len(data), 'client')}, got {ids}"
            )
        if transcript is not None and not isinstance(transcript, Transcript):
            raise InputError(f"transcript must be a Transcript, got {transcript!r}")
        watched = None if transcript is None else transcript.clients
        if watched is not None and not set(watched) <= set(range(len(data))):
            raise InputError(
                f"the transcript cannot watch clients {list(watched)} of {len(data)}: clients are "
                "numbered from 0"
            )
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
        """Start privacy accounts: clients then have ``state.privacy``, and the ledger states an ε.

        Call this method before the first upload; see `fedcore.privacy.mechanisms`.

        Parameters
        ----------
        delta : float
            δ at which ε is stated.
        neighbours : {"replace_one", "add_or_remove_one", "zero_out_one", "change_entry"}
            Neighbouring relation that the sensitivities of all mechanisms assume.

        Raises
        ------
        InputError
            If a second call has other arguments, or if an upload without noise came before the
            call. A call of `center` counts as an upload.
        """
        own = self.ledger.privacy
        if own is not None and (own.delta, own.neighbours) == (delta, neighbours):
            return  # an exchange before the algorithm has called it
        if own is not None:
            raise InputError(
                f"protect was called with delta={own.delta:g} and neighbours='{own.neighbours}', "
                f"and now with delta={delta:g} and neighbours='{neighbours}': give both calls the "
                "same"
            )
        if self.ledger.rounds:
            raise InputError(
                "protect comes before the first upload, and center makes one: take center=False, "
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
        """The clients with their current samples, for evaluation; the ledger charges no access."""
        return self._transport.clients

    def center(self) -> np.ndarray:
        """Subtract the mean of all samples from every client's samples, in one or two rounds.

        A client uploads the sum of its samples, their number, and the number of its features far
        from the origin. A feature is far from the origin if its mean is above 2²⁰ times its
        standard deviation. With d features, the upload has d + 2 doubles, whatever the precision of
        the data. The client downloads the mean, d doubles. If some client has a feature far from
        the origin, a second round removes the mean that rounding has left. In the second round,
        each client uploads d + 1 doubles and downloads d doubles. No noise is added. Without secure
        aggregation, the server learns each client's upload. With secure aggregation, the server
        learns only the sum of all uploads.

        Returns
        -------
        ndarray of shape (d,)
            The mean, in data units.

        Raises
        ------
        InputError
            If called after `protect` or an upload, if the clients contain factors in place of their
            rows, or if the sums overflow.
        """
        self.require_single_rows()
        if self.ledger.rounds or self.ledger.privacy is not None:
            raise InputError(
                "center may be called only once, before the first upload, in a run without noise"
            )
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

        A client uploads the sum of squares of every feature, d doubles, and downloads the scales,
        also d doubles. No noise is added. The mean square has the number of samples as divisor, as
        in scikit-learn's StandardScaler.

        Parameters
        ----------
        mean : ndarray of shape (d,)
            Mean that `center` has subtracted, or zeros without `center`. A feature counts as
            constant if its root mean square is at most ten times the rounding error of its mean.

        Returns
        -------
        ndarray of shape (d,)
            The scales, in data units; the scale of a constant feature is 1.
        """
        total = self._sum_in_double(squares_of_features)
        rounding = np.finfo(np.float32 if self._single else np.float64).eps * np.abs(mean)
        found = np.sqrt(total / self.shape.n_samples)
        scales = np.where(found > 10 * rounding, found, 1.0)
        self.ledger.download(scales, self.shape.n_clients)
        self._transport.change(Scale(scales))
        return scales

    def standardise(self, mean: np.ndarray, scales: np.ndarray) -> None:
        """Let clients subtract a mean and divide by scales that they already know; nothing is sent.

        Parameters
        ----------
        mean, scales : ndarray of shape (n_features,)
            Vector to subtract, and divisor of each feature, in data units.
        """
        self._transport.change(Centre(mean))
        self._transport.change(Scale(scales))

    def _sum_in_double(self, number: Callable[[Any], np.ndarray]) -> np.ndarray:
        """Upload ``number(samples)`` of each client in double precision, and return the sum."""
        step = partial(_of_samples, number)
        replies = self._transport.ask(Do(step, "upload"), self._everyone)
        self.ledger.upload(replies)
        total: np.ndarray = reduce(np.add, replies)
        self._show(None, self._everyone, replies, total)
        return total

    def _subtract(self, mean: np.ndarray) -> None:
        """Send a mean to all clients, which subtract it from their samples."""
        self.ledger.download(mean, self.shape.n_clients)
        self._transport.change(Centre(mean))

    def bound_rows(self, bound: float = 1.0, *, clip: bool = False) -> None:
        """Make sure that every row has norm at most `bound`, as all privacy mechanisms assume.

        If `clip` is true, clients scale every row whose norm is above `bound` to norm `bound`. If
        `clip` is false, a row whose norm is above `bound` is an error. If the clients hold factors
        in place of their rows (`fedcore.problems.clients.Reduction`), rows cannot be clipped, and a
        row whose norm was above `bound` is always an error. The bound must not come from the data.

        Parameters
        ----------
        bound : float, default=1
            Largest norm of a row, in data units.
        clip : bool, default=False
            Whether clients scale down longer rows.

        Raises
        ------
        InputError
            If `bound` is not a positive finite number, or if a row has a norm above `bound` and is
            not clipped.
        """
        require_valid(POSITIVE, bound=bound)
        reduction = self.clients.reduction
        if reduction is not None:
            require_norm(reduction.largest_row, bound, "the longest row", advice="")
        else:
            self._transport.change(BoundRows(bound, clip))

    def require_single_rows(self) -> None:
        """Raise an error if the clients hold factors in place of the rows that a method must read.

        Raises
        ------
        InputError
            If the clients contain factors in place of their rows.
        """
        if self.clients.reduction is not None:
            raise InputError(
                "this method reads single rows, but these data were reduced to factors: "
                "make the problem with reduce = false"
            )

    def broadcast(self, message: Any, *, to: Sequence[int] | None = None) -> None:
        """Send a message to clients; the next client steps get this message as third argument.

        All clients share one read-only copy of the arrays, so the server may change its own arrays
        afterwards. Each client gets its own lists and mappings.

        Parameters
        ----------
        message : array, number, None, or a list, tuple or mapping of these
            Message to send. The ledger counts the message once for each receiver.
        to : sequence of int, optional
            Positions of the clients that get the message, from 0; all clients by default.

        Raises
        ------
        InputError
            If `to` names a client that does not exist.
        TypeError
            If the ledger cannot count the message; see `fedcore.federation.ledger.payload`. No
            client gets such a message.
        """
        message = messages.read_only(messages.narrow(message) if self._single else message)
        receivers = self._positions(to)
        payload(message)  # no client gets what the ledger cannot count
        self._transport.hold(message, receivers)
        if self._inbox is not None:
            for position in receivers:
                self._inbox[position] = message
        self.ledger.download(message, len(receivers))

    def frame(self, start: np.ndarray) -> Frame | None:
        """Return coordinates in which iterations from `start` cost little, or None if none exist.

        A matrix in these coordinates is a `fedcore.rowspace.Block`, which `broadcast` accepts.
        After the broadcast of a `Block`, `sum` of the client step
        `fedcore.parts.gram_products.gram_product` also returns a `Block`. The coordinates exist
        only if all clients are in this process, their features far outnumber their samples, and no
        transcript is kept. Coordinates do not change what the ledger counts.

        Parameters
        ----------
        start : ndarray of shape (d, r)
            Matrix with which the iterations start.

        Returns
        -------
        fedcore.rowspace.Frame or None
        """
        engine, alone = self._transport, self._transcript is None
        return engine.frame(start) if alone and isinstance(engine, InProcess) else None

    @property
    def at_once(self) -> bool:
        """Whether the engine may use all clients' samples at once, in place of client steps."""
        return isinstance(self._transport, InProcess) and not self._transport.plain

    def gather(self, step: Step, *, of: Sequence[int] | None = None) -> Sequence[Any]:
        """Run the function `step` at each client, and upload the replies in one round.

        The server gets copies of the replies, and may write into them.

        Parameters
        ----------
        step : callable
            Function ``(data, state, message) -> reply``. The arguments of the step are the client's
            rows of shape (n_i, n_features), the client's state, and the last message to the client.
            The ledger counts the reply.
        of : sequence of int, optional
            Positions of the clients that take part, from 0; all clients by default.

        Returns
        -------
        list, or ndarray from a stacked step
            One reply per entry of `of`, in this order. A client that occurs twice runs the step
            twice in succession.

        Raises
        ------
        InputError
            If `of` names a client that does not exist.
        TypeError
            If the ledger cannot count a reply; see `fedcore.federation.ledger.payload`.
        """
        positions = self._positions(of)
        replies = messages.copied(self._transport.ask(self._upload(step), positions))
        self.ledger.upload(replies)
        self._show(step, positions, replies)
        return replies

    def sum(self, step: Step, *, of: Sequence[int] | None = None) -> Any:
        """Run the function `step` at each client, and return the sum of the replies, in one round.

        With secure aggregation the server sees only this sum. Integers and booleans are added in 64
        bits.

        Parameters
        ----------
        step : callable
            See `gather`. The reply is a number or an array, and has the same shape at each client.
        of : sequence of int, optional
            See `gather`.

        Returns
        -------
        ndarray or number
            The sum, in the shape of one reply.

        Raises
        ------
        InputError
            If no client takes part, if `of` names a client that does not exist, if replies differ
            in shape, or if a reply is not an array of real numbers.
        TypeError
            See `gather`.
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
        """Run the function `step` at each client, and return the unweighted mean of the replies.

        Parameters
        ----------
        step, of
            See `sum`.

        Returns
        -------
        ndarray or number
            The mean, in the shape of one reply.
        """
        positions = self._positions(of)
        return self.sum(step, of=positions) / len(positions)

    def local(self, step: Step, *, of: Sequence[int] | None = None) -> None:
        """Run the function `step` at each client without communication, and drop the replies.

        Parameters
        ----------
        step, of
            See `gather`.
        """
        self._transport.ask(Do(step, "none"), self._positions(of))

    def observe(self, step: Step, *message: Any) -> Sequence[Any]:
        """Run the function `step` at all clients for evaluation; the ledger does not count this.

        Parameters
        ----------
        step : callable
            See `gather`.
        *message : object
            At most one message, which the step gets in place of the last message to its client.

        Returns
        -------
        sequence
            One reply per client.
        """
        return self._transport.ask(Do(step, "look", message=message), self._everyone)

    def client_state(self, name: str, *, of: Iterable[int] | None = None) -> Sequence[Any]:
        """Return ``state.<name>`` of the clients; the ledger does not count this.

        Parameters
        ----------
        name : str
            Name of the attribute, without ``state.``.
        of : iterable of int, optional
            Positions of the clients, from 0; all clients by default.

        Returns
        -------
        sequence
            The value of each client; do not change these values in place.
        """
        return self._transport.ask(Read(name), self._positions(of))

    def client_states(self) -> Sequence[State]:
        """Return all clients' states, for checkpoints; the ledger does not count this."""
        return self._transport.states

    def _positions(self, of: Any) -> Any:
        """Return `of` as checked positions: None becomes all clients, and other values a list."""
        if of is None or of is self._everyone:
            return self._everyone
        try:
            positions = list(of.tolist() if isinstance(of, np.ndarray) else of)
        except TypeError as error:
            raise InputError(f"clients are chosen by a list of positions, got {of!r}") from error
        n = self.shape.n_clients
        plain = set(map(type, positions)) == {int}  # a list of ints, the usual case, needs no loop
        if plain and 0 <= min(positions) and max(positions) < n:
            return of if isinstance(of, range) else positions
        for i in positions:
            if isinstance(i, bool | np.bool_):
                raise InputError("clients are chosen by positions: give np.flatnonzero(mask)")
            if not isinstance(i, int | np.integer) or not 0 <= i < n:
                raise InputError(
                    f"there is no client at position {i!r}: give positions from 0 to {n - 1}"
                )
        return of if isinstance(of, range) else positions

    def _show(
        self,
        step: Step | None,
        positions: Sequence[int],
        replies: Sequence[Any] | None,
        total: Any = None,
    ) -> None:
        """Pass an upload to the transcript; `total` is the sum of the replies, or None."""
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

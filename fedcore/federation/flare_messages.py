"""What the server of a run over NVIDIA FLARE tells a member, and what it answers; both as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fedcore.federation.failures import Failure
from fedcore.federation.mpi_messages import Seed
from fedcore.federation.transport import Charges, Do, Order, Read


class Join(NamedTuple):
    """Say what the server has to know before a run; the answer's value is `Joined`."""


class Joined(NamedTuple):
    """What a member says about its data.

    Attributes
    ----------
    name : str
        Of the problem in a problem file; empty for a table.
    columns : list of str
        Names of the features; empty if they have none, as in a problem file.
    open_ended : bool
        Whether further columns hold zeros alone, as in a LIBSVM file.
    n_features : int
    n_samples : int or None
        None if the member does not say it.
    dtype : str
    sparse, labelled : bool
    version : str
        Of fedcore.
    """

    name: str
    columns: list[str]
    open_ended: bool
    n_features: int
    n_samples: int | None
    dtype: str
    sparse: bool
    labelled: bool
    version: str


class Begin(NamedTuple):
    """Begin the member's side of a run.

    Attributes
    ----------
    run : int
    columns : list of str
        All members' features in their common order; empty if it is the member's own.
    root : Seed
        Of the clients' public random streams. Noise has another source, which never crosses.
    client_id, position : int
    labelled : bool
    """

    run: int
    columns: list[str]
    root: Seed
    client_id: int
    position: int
    labelled: bool


class Look(NamedTuple):
    """Keep what an order for evaluation shows, under a number; `Fetch` may ask for it.

    Attributes
    ----------
    number : int
    order : Do or Read
    fetch : bool
        Whether `Fetch` may follow; the member's policy then has to allow evaluation.
    """

    number: int
    order: Do | Read
    fetch: bool


class Fetch(NamedTuple):
    """Show what `Look` has kept."""

    number: int


class Drop(NamedTuple):
    """Forget what `Look` has kept: nobody can ask for it any more."""

    number: int


class Carry(NamedTuple):
    """Obey orders one after the other; the answer's value has the replies that leave."""

    run: int
    orders: list[Order | Look | Fetch | Drop]


class Finish(NamedTuple):
    """End a run; the member saves its own results, which are the named numbers of `Look`."""

    run: int
    results: Mapping[str, int]


class Answer(NamedTuple):
    """What a member answers.

    Attributes
    ----------
    value : object
    charges : Charges or None
    failure : Failure or None
    """

    value: Any = None
    charges: Charges | None = None
    failure: Failure | None = None

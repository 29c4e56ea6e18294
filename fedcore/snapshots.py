"""Snapshots: those iterates of a run that a policy stores, up to a size limit.

The policy ``log`` stores the first iterate at or after each of the iterations 0, 1, 2, 4, 8, …, and
the last iterate. The policy ``all`` stores every iterate, ``last`` only the last one, and ``none``
no iterate. For networks, which have many parameters, ``log`` stores only the last iterate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedcore.iterates import Iterate
from fedcore.rowspace import Block
from fedcore.validation import one_of, require_valid

POLICIES = ("none", "last", "log", "all")
Clients = Callable[[], Mapping[str, Sequence[np.ndarray]]]
LIMIT = 50_000_000  # bytes of the iterates that one history keeps


@dataclass
class Snapshot:
    """A stored iterate of a run.

    Attributes
    ----------
    record : int
        Number of the row of numbers that describes the iterate, from 0.
    iteration : int
    shared : ndarray or Block of shape (d, r), or ndarray of shape (p,) of networks
        Server's matrix or network parameters.
    clients : dict of str to ndarray of shape (clients, …)
        The clients' arrays by name. The size limit may leave only the first clients.
    """

    record: int
    iteration: int
    shared: np.ndarray | Block
    clients: dict[str, np.ndarray] = field(default_factory=dict)


class Snapshots:
    """Stored iterates of one run.

    Parameters
    ----------
    policy : {"none", "last", "log", "all"}
    limit : int, optional
        Largest total size in bytes of the server's stored arrays. The clients' stored arrays have
        the same limit.

    Attributes
    ----------
    kept : list of Snapshot
    left_out : int
        Number of iterates that were dropped because of the size limit.
    n_clients : int
        Number of clients that hold arrays, including clients dropped because of the size limit.
    """

    def __init__(self, policy: str, *, limit: int = LIMIT) -> None:
        require_valid(one_of(POLICIES), iterates=policy)
        self.policy, self._limit = policy, limit
        self.kept: list[Snapshot] = []
        self.left_out, self.n_clients = 0, 0
        self._next = 0  # of the iterations that ``log`` keeps
        self._last: tuple[int, int, np.ndarray | Block, Clients | None] | None = None

    def see(self, record: int, iteration: int, iterate: Iterate, *, clients: bool = False) -> None:
        """Store an iterate if the policy says so; else hold it back, as it may be the last one.

        If `clients` is true, a stored iterate includes the clients' arrays, up to the size limit.
        """
        if self.policy == "none":
            return
        held = iterate.held if isinstance(iterate.held, Block) else np.array(iterate.held)
        self._last = record, iteration, held, iterate.clients if clients else None
        single = iterate.classifiers is None
        if self.policy == "all" or (self.policy == "log" and single and iteration >= self._next):
            self._next = 1 << int(iteration).bit_length()
            self._keep()

    def resume(self, record: int, iteration: int, held: np.ndarray) -> None:
        """Hold back the server's array of the iterate from which a killed run continues."""
        if self.policy != "none":
            self._last = record, iteration, np.array(held), None

    def end(self) -> None:
        """Store the last iterate."""
        if self._last is not None:
            self._keep()

    @property
    def nbytes(self) -> int:
        """Return the size in bytes of the server's arrays in all stored iterates."""
        return sum(one.shared.nbytes for one in self.kept)

    def _keep(self) -> None:
        assert self._last is not None
        record, iteration, shared, clients = self._last
        parts = {} if clients is None else clients()
        held = {name: np.array(list(values)) for name, values in parts.items() if len(values)}
        self.kept.append(Snapshot(record, iteration, shared, held))
        self._last = None
        self._fit_clients()
        while self.nbytes > self._limit:
            # Every second one between the first and the last goes, and then these two.
            dropped = slice(1, -1, 2) if len(self.kept) > 2 else slice(0, 1)
            self.left_out += len(self.kept[dropped])
            del self.kept[dropped]

    def _fit_clients(self) -> None:
        """Drop the last clients from all snapshots until the arrays of the others fit."""
        a_client = sum(a[0].nbytes for one in self.kept for a in one.clients.values())
        most = self._limit // max(a_client, 1)
        for one in self.kept:
            self.n_clients = max([self.n_clients, *map(len, one.clients.values())])
            # A copy, because a view would hold the clients that are dropped.
            kept = one.clients.items() if most else ()
            one.clients = {name: a if len(a) <= most else a[:most].copy() for name, a in kept}


def stack(
    runs: Sequence[Snapshots], limit: int = LIMIT
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], dict[str, int]]:
    """Stack the server's arrays of all repeats (runs), and the clients' arrays of the first repeat.

    Returns
    -------
    iterates : dict of str to ndarray
        The server's arrays of as many repeats as fit into `limit` bytes. ``iteration`` and
        ``record_number`` have shape (repeats, snapshots) and are padded with −1. ``shared`` has
        shape (repeats, snapshots, …) and is padded with NaN. All three dicts are empty if no
        iterate was kept, if the first repeat exceeds `limit`, or if the server's arrays are empty.
    client_iterates : dict of str to ndarray
        The clients' arrays in the first repeat, for as many clients as fit into the rest of
        `limit`. ``iteration`` and ``record_number`` have shape (snapshots,). The clients' arrays
        have shape (snapshots, clients, …).
    left_out : dict of str to int
        Numbers of ``repeats``, ``snapshots`` and ``clients`` that are not in the arrays.
    """
    kept = [run.kept for run in runs]
    shape = kept[0][-1].shared.shape if kept[0] else (0,)
    alike = [[one for one in run if one.shared.shape == shape] for run in kept]
    left_out = {"snapshots": sum(run.left_out for run in runs)}
    left_out["snapshots"] += sum(map(len, kept)) - sum(map(len, alike))
    sizes = np.cumsum([sum(one.shared.nbytes for one in run) for run in alike])
    fit = int(np.searchsorted(sizes, limit, side="right"))
    fit = next((i for i, run in enumerate(alike[:fit]) if not run), fit)
    left_out["repeats"] = len(runs) - fit
    if not fit or 0 in shape:
        return {}, {}, {}
    longest, count = max(map(len, alike[:fit])), (fit, max(map(len, alike[:fit])))
    iterates = {name: np.full(count, -1) for name in ("iteration", "record_number")}
    iterates["shared"] = np.full((fit, longest, *shape), np.nan, alike[0][0].shared.dtype)
    for repeat, run in enumerate(alike[:fit]):
        for i, one in enumerate(run):
            iterates["iteration"][repeat, i] = one.iteration
            iterates["record_number"][repeat, i] = one.record
            iterates["shared"][repeat, i] = one.shared
    of_clients, fitting = _stack_clients(kept[0], limit - int(sizes[fit - 1]))
    return iterates, of_clients, left_out | {"clients": runs[0].n_clients - fitting}


def unstack(
    iterates: Mapping[str, np.ndarray],
    client_iterates: Mapping[str, np.ndarray],
    about: Mapping[str, Any],
) -> Snapshots:
    """Restore the snapshots of one run from the arrays that `stack` returned.

    Parameters
    ----------
    iterates, client_iterates : mapping of str to ndarray
    about : mapping
        Mapping with the entries ``policy`` and ``left_out``; empty if no iterate was kept.
    """
    found = Snapshots(about.get("policy", "none"))
    if not iterates:
        return found
    found.left_out = about["left_out"]["snapshots"]
    rows = zip(*(iterates[k][0] for k in ("record_number", "iteration", "shared")), strict=True)
    found.kept = [Snapshot(int(record), int(iteration), held) for record, iteration, held in rows]
    by_record = {one.record: one for one in found.kept}
    held = {k: v for k, v in client_iterates.items() if k not in ("iteration", "record_number")}
    for i, record in enumerate(client_iterates.get("record_number", ())):
        by_record[int(record)].clients = {name: array[i] for name, array in held.items()}
    found.n_clients = about["left_out"]["clients"] + max(
        (a.shape[1] for a in held.values()), default=0
    )
    return found


def _stack_clients(kept: Sequence[Snapshot], limit: int) -> tuple[dict[str, np.ndarray], int]:
    """Stack the arrays of clients up to `limit` bytes; return them and how many clients fit."""
    shown = [one for one in kept if one.clients]
    if not shown:
        return {}, 0
    number = max(len(a) for one in shown for a in one.clients.values())
    fit = min(number, limit // sum(a[0].nbytes for one in shown for a in one.clients.values()))
    if not fit:
        return {}, 0
    found = {
        "iteration": np.array([one.iteration for one in shown]),
        "record_number": np.array([one.record for one in shown]),
    }
    for name in dict.fromkeys(name for one in shown for name in one.clients):
        first = next(one.clients[name] for one in shown if name in one.clients)
        found[name] = np.full((len(shown), fit, *first.shape[1:]), np.nan, first.dtype)
        for row, one in zip(found[name], shown, strict=True):
            if name in one.clients:
                row[...] = one.clients[name][:fit]
    return found, fit

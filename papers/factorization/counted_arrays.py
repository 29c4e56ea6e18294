"""Floating-point operations of a run, those of the server and those of its clients.

The clients' data are `Counted` arrays. Each product and each entrywise operation on them, and on
what comes of them, is done by NumPy and counted by its shapes: ``2 m k n`` for a product of (m, k)
and (k, n), half of them additions, and one for an entry of a sum, a difference, a product or a
quotient. Comparisons, copies and scalings by powers of two are none.

LAPACK does not show its operations. NumPy's QR and LU factorisations of a `Counted` array, and
calls of `fedcore.linalg.orth`, which are seen by the interpreter's hook for profilers, are counted
as in Golub & Van Loan, *Matrix Computations*, Sections 5.2 and 3.2. Not counted are random
numbers, evaluation (`Federation.observe`), and other functions of LAPACK, among them the checks of
rounding in the power methods.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from operator import add
from types import FrameType
from typing import Any

import numpy as np

from fedcore.federation.engines.in_process import InProcess
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import payload
from fedcore.federation.transport import Do, Read, Setup, Total
from fedcore.linalg import orth
from fedcore.problems.clients import Clients

SERVER, CLIENTS, NOBODY = "server", "clients", "nobody"
PRODUCTS, ENTRIES, FACTORISATIONS = "products", "entries", "factorisations"
ENTRYWISE = (np.add, np.subtract, np.multiply, np.divide)


def qr_operations(m: int, k: int) -> float:
    """Return the operations of a thin QR factorisation by reflections, Q formed, for m >= k."""
    return 2 * (2 * m * k**2 - 2 * k**3 / 3)


def solve_operations(k: int, columns: int) -> float:
    """Return the operations of the solution of a k × k system by LU, for so many right sides."""
    return 2 * k**3 / 3 + 2 * k**2 * columns


def _of_qr(matrix: np.ndarray) -> float:
    return qr_operations(*matrix.shape)


def _of_solve(matrix: np.ndarray, right: np.ndarray) -> float:
    return solve_operations(len(matrix), right.shape[-1])


LAPACK: dict[Any, Callable[..., float]] = {np.linalg.qr: _of_qr, np.linalg.solve: _of_solve}


class Count:
    """Operations so far, by side and kind.

    Attributes
    ----------
    side : str
        Who computes now.
    found : dict of (str, str) to float
        By side and kind.
    """

    def __init__(self) -> None:
        self.side = SERVER
        self.found: dict[tuple[str, str], float] = defaultdict(float)

    def add(self, kind: str, operations: float) -> None:
        """Count operations of the side that computes now."""
        self.found[self.side, kind] += operations

    def operations_of(self, side: str, *, multiply_add: float = 2) -> float:
        """Return the operations of a side, a multiplication with its addition as so many.

        Of a factorisation, too, half are additions.
        """
        pairs = self.found[side, PRODUCTS] + self.found[side, FACTORISATIONS]
        return pairs * multiply_add / 2 + self.found[side, ENTRIES]

    def array(self, matrix: np.ndarray) -> Counted:
        """Return a view whose operations are counted here."""
        counted = np.asarray(matrix).view(Counted)
        counted.count = self
        return counted

    @contextmanager
    def by(self, side: str) -> Iterator[None]:
        """Let another side compute."""
        before, self.side = self.side, side
        try:
            yield
        finally:
            self.side = before

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count calls of `orth`, which passes plain arrays to LAPACK, by the shapes they get."""

        def see(frame: FrameType, event: str, argument: Any) -> None:
            if event == "call" and frame.f_code is orth.__code__:
                self.add(FACTORISATIONS, _of_qr(frame.f_locals["matrix"]))

        before = sys.getprofile()
        sys.setprofile(see)
        try:
            yield
        finally:
            sys.setprofile(before)


class Counted(np.ndarray):
    """Array whose operations are counted.

    Attributes
    ----------
    count : Count
    """

    count: Count

    def __array_finalize__(self, other: Any) -> None:
        if hasattr(other, "count"):
            self.count = other.count

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Compute with plain arrays, and count."""
        given = [_plain(x) for x in inputs]
        if "out" in kwargs:
            kwargs["out"] = tuple(map(_plain, kwargs["out"]))
        found = getattr(ufunc, method)(*given, **kwargs)
        if ufunc is np.matmul:
            self.count.add(PRODUCTS, 2 * np.size(found) * given[0].shape[-1])
        elif ufunc in ENTRYWISE:
            self.count.add(ENTRIES, np.size(found if method == "__call__" else given[0]))
        return self._counted(found)

    def __array_function__(
        self, function: Any, types: Any, args: Iterable[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """Call with plain arrays, and count what is known of LAPACK."""
        given = [_plain(x) for x in args]
        if function in LAPACK:
            self.count.add(FACTORISATIONS, LAPACK[function](*given))
        return self._counted(function(*given, **kwargs))

    def _counted(self, found: Any) -> Any:
        if isinstance(found, tuple):
            return tuple(map(self._counted, found))
        return self.count.array(found) if isinstance(found, np.ndarray) else found


def _plain(x: Any) -> Any:
    if isinstance(x, list | tuple):
        return type(x)(map(_plain, x))
    return x.view(np.ndarray) if isinstance(x, Counted) else x


class CountedClients(InProcess):
    """Engine that runs every step client by client, and sums as the server would: counted."""

    def __init__(self, setup: Setup, *, count: Count) -> None:
        super().__init__(setup, plain=True)
        self._count = count

    def ask(self, order: Do | Read, of: Sequence[int]) -> Sequence[Any]:
        """Count for the clients; what is looked at for evaluation counts for nobody."""
        looked = isinstance(order, Read) or order.purpose == "look"
        with self._count.by(NOBODY if looked else CLIENTS):
            return super().ask(order, of)

    def total(self, order: Do, of: Sequence[int]) -> Total:
        """Add the replies one by one."""
        replies = [self._count.array(reply) for reply in self.ask(order, of)]
        sizes = np.array([payload(reply) for reply in replies])
        return Total(reduce(add, replies), *sizes.sum(axis=0).tolist())


def counted_federation(data: Sequence[np.ndarray], count: Count, seed: int = 0) -> Federation:
    """Return a federation whose operations are counted; `Count.watching` sees the rest."""
    clients = Clients([count.array(matrix) for matrix in data])
    engine = partial(CountedClients, count=count)
    return Federation(clients, seed, check=False, engine=engine)

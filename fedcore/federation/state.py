"""Values that clients keep between rounds, of one client or stacked over many clients."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from fedcore.errors import InputError
from fedcore.seeds import CLIENT, child


class State(SimpleNamespace):
    """State of one client; the client's random stream is created on first use."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"state.{name} is missing: first run a client step that sets state.{name}", name=name
        )

    @cached_property
    def rng(self) -> np.random.Generator:
        """The client's random stream."""
        return np.random.default_rng(child(self._root, CLIENT, self._id))


Arrays = dict[str, np.ndarray | None]  # None: a step of some clients has used it once


class StackedState:
    """States of several clients, or of one client in several runs, stacked into arrays.

    Each attribute is an array with one row per state. A number that is assigned to an attribute is
    stored for all states. A client step that runs once for all clients (a stacked step) reuses the
    arrays of the stacked step before it. A stacked step of some clients reads and writes rows of
    these arrays. Any step that runs client by client ends this reuse. Each state contains views of
    its rows, so steps for a single client see what stacked steps have written.

    Attributes
    ----------
    kept : SimpleNamespace or None
        Values computed from the data alone, for all clients or for the client whose runs are
        stacked. The attribute is None if the states belong to only some of the clients.
    slots : list of int or None
        Place of each run in its block of runs (see `fedcore.federation.lockstep`), or None if the
        states belong to several clients.
    """

    kept: SimpleNamespace | None
    slots: list[int] | None
    _states: Sequence[SimpleNamespace]
    _arrays: Arrays

    def __init__(
        self,
        states: Sequence[SimpleNamespace],
        arrays: Arrays,
        kept: SimpleNamespace | None,
        slots: list[int] | None = None,
    ) -> None:
        self.__dict__.update(_states=states, _arrays=arrays, kept=kept, slots=slots)

    def __getattr__(self, name: str) -> np.ndarray:
        held = self._arrays.get(name)
        if held is None:
            held = np.stack([getattr(state, name) for state in self._states])
            if held.dtype == object:
                raise InputError(
                    f"a stacked step reads state.{name}, which is no array: remove @stacked from a "
                    "step that draws random numbers, adds noise or keeps anything but arrays"
                )
            self._share(name, held)
        return held

    def __setattr__(self, name: str, value: Any) -> None:
        if np.ndim(value) == 0:
            value = np.full(len(self._states), value)
        held = self._arrays.get(name)
        if held is not None and (held.shape, held.dtype) == (value.shape, value.dtype):
            held[...] = value
        else:
            self._share(name, np.array(value))

    def _share(self, name: str, whole: np.ndarray) -> None:
        self._arrays[name] = whole
        for i, state in enumerate(self._states):
            setattr(state, name, whole[i, ...])


class StatesOfSome(StackedState):
    """Stacked states of some clients. After the step, `write_back` stores what it has changed.

    Parameters
    ----------
    states : sequence of State
        States of all clients.
    everyone : dict
        Arrays of the `StackedState` of all clients.
    rows : list of int
        Positions of the clients that take part.
    """

    _all: StackedState
    _rows: list[int]

    def __init__(
        self, states: Sequence[SimpleNamespace], everyone: Arrays, rows: list[int]
    ) -> None:
        super().__init__([states[i] for i in rows], {}, None)
        self.__dict__.update(_all=StackedState(states, everyone, None), _rows=rows)

    def __getattr__(self, name: str) -> np.ndarray:
        if self._arrays.get(name) is None:
            whole = self._of_all(name)
            if whole is None:
                return super().__getattr__(name)
            self._arrays[name] = whole[self._rows]
        return super().__getattr__(name)

    def _share(self, name: str, whole: np.ndarray) -> None:
        self._arrays[name] = whole

    def _of_all(self, name: str) -> np.ndarray | None:
        """Return the array of all clients, or None if there is none.

        The array is made if the last stacked step of some clients has used the attribute, too.
        """
        everyone, states = self._all._arrays, self._all._states
        again = name in everyone and everyone[name] is None
        if again and all(name in vars(state) for state in states):
            held = [getattr(state, name) for state in states]
            kinds = {(np.shape(one), getattr(one, "dtype", None)) for one in held}
            if len(kinds) == 1 and isinstance(held[0], np.ndarray) and held[0].dtype != object:
                self._all._share(name, np.stack(held))
        return everyone.get(name)


def write_back(some: StatesOfSome) -> None:
    """Store the rows that a step of some clients has read or set, for it may have changed them.

    This is no method, because attributes of `some` have the names that a step chooses.
    """
    for name, rows in some._arrays.items():
        assert rows is not None
        whole, n = some._of_all(name), len(some._rows)
        if whole is not None and (rows.shape, rows.dtype) == ((n, *whole.shape[1:]), whole.dtype):
            whole[some._rows] = rows
        else:
            some._all._arrays[name] = None
            StackedState._share(some, name, rows)

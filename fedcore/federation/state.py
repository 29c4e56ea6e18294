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


class StackedState:
    """States of several clients, or of one client in several runs, stacked into arrays.

    Each attribute is an array with one row per state. A number that is assigned to an attribute is
    stored for all states. A client step that runs once for all clients (a stacked step) reuses the
    arrays of the stacked step before it, and a step for some clients reads and writes their rows.
    A step that runs client by client ends this reuse. Each state contains views of its rows, so
    steps for a single client see what stacked steps have written.

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
    _arrays: dict[str, np.ndarray]

    def __init__(
        self,
        states: Sequence[SimpleNamespace],
        arrays: dict[str, np.ndarray],
        kept: SimpleNamespace | None,
        slots: list[int] | None = None,
    ) -> None:
        self.__dict__.update(_states=states, _arrays=arrays, kept=kept, slots=slots)

    def __getattr__(self, name: str) -> np.ndarray:
        if name not in self._arrays:
            stack = np.stack([getattr(state, name) for state in self._states])
            if stack.dtype == object:
                raise InputError(
                    f"a stacked step reads state.{name}, which is no array: remove @stacked from a "
                    "step that draws random numbers, adds noise or keeps anything but arrays"
                )
            self._share(name, stack)
        return self._arrays[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if np.ndim(value) == 0:
            value = np.full(len(self._states), value)
        held = self._arrays.get(name)
        if held is not None and (held.shape, held.dtype) == (value.shape, value.dtype):
            held[...] = value
        else:
            self._share(name, np.array(value))

    def _whole(self, name: str) -> np.ndarray | None:
        """Return an attribute of all states, or None if they do not all hold arrays of one kind."""
        if name not in self._arrays:
            if not all(name in vars(state) for state in self._states):
                return None
            held = [getattr(state, name) for state in self._states]
            if any(not isinstance(one, np.ndarray) for one in held):
                return None
            if len({(one.shape, one.dtype) for one in held}) > 1:
                return None
            self._share(name, np.stack(held))
        return self._arrays[name]

    def _share(self, name: str, whole: np.ndarray) -> None:
        self._arrays[name] = whole
        for i, state in enumerate(self._states):
            setattr(state, name, whole[i, ...])


class SomeStates(StackedState):
    """States of some clients. After a step, `write_back` puts what it has set where it belongs.

    Parameters
    ----------
    states : sequence of State
        States of all clients.
    everyone : dict of str to ndarray
        Arrays of a `StackedState` of all clients.
    rows : list of int
        Positions of the clients that take part.
    """

    _all: StackedState
    _rows: list[int]

    def __init__(
        self, states: Sequence[SimpleNamespace], everyone: dict[str, np.ndarray], rows: list[int]
    ) -> None:
        super().__init__([states[i] for i in rows], {}, None)
        self.__dict__.update(_all=StackedState(states, everyone, None), _rows=rows)

    def __getattr__(self, name: str) -> np.ndarray:
        if name not in self._arrays:
            whole = self._all._whole(name)
            if whole is None:
                return super().__getattr__(name)
            self._arrays[name] = whole[self._rows]
        return self._arrays[name]

    def _share(self, name: str, whole: np.ndarray) -> None:
        self._arrays[name] = whole


def write_back(some: SomeStates) -> None:
    """Write what a step has read or set; it may have changed in place what it has read."""
    for name, rows in some._arrays.items():
        whole = some._all._whole(name)
        if whole is not None and (whole.shape[1:], whole.dtype) == (rows.shape[1:], rows.dtype):
            whole[some._rows] = rows
        else:
            some._all._arrays.pop(name, None)
            StackedState._share(some, name, rows)

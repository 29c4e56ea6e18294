"""What stays with the clients between rounds, one by one or as arrays over many of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from fedcore.errors import InputError
from fedcore.seeds import CLIENT, child


class State(SimpleNamespace):
    """What stays with one client; its random stream is made when it is first asked for."""

    @cached_property
    def rng(self) -> np.random.Generator:
        """The client's random stream."""
        return np.random.default_rng(child(self._root, CLIENT, self._id))


class StackedState:
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
            stack = np.stack([getattr(state, name) for state in self._states])
            if stack.dtype == object:
                raise InputError(
                    f"a stacked step asks for state.{name}, which is no array: what draws, adds "
                    "noise or keeps anything else is a plain step, without @stacked"
                )
            self._share(name, stack)
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

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
    arrays of the stacked step before it. Any step that runs client by client, or for only some
    clients, ends this reuse. Each state contains views of its rows, so steps for a single client
    see what stacked steps have written.

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
        if name in self._arrays and self._arrays[name].shape == value.shape:
            self._arrays[name][...] = value
        else:
            self._share(name, np.array(value))

    def _share(self, name: str, whole: np.ndarray) -> None:
        self._arrays[name] = whole
        for i, state in enumerate(self._states):
            setattr(state, name, whole[i, ...])

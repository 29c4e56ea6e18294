"""Members of a run over FLARE in this process: all that crosses is bytes, without FLARE itself."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fedcore.federation.flare import Flare
from fedcore.federation.flare_group import Group
from fedcore.federation.flare_member import Data, Member, Rules
from fedcore.federation.flare_messages import Begin
from fedcore.federation.site import Policy
from fedcore.problems.clients import Clients

OPEN = Rules(Policy(evaluation=True))
CLOSED = Rules(Policy(modules=("fedcore",)))


class Near:
    """Link to members in this process."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = members
        self.sent: list[Mapping[int, bytes]] = []

    def call(self, messages: Mapping[int, bytes]) -> Mapping[int, bytes]:
        self.sent.append(messages)
        return {i: self.members[i].answer(message) for i, message in messages.items()}


class Simulated(Member):
    """A member whose noise a test knows."""

    noise: Any = None

    def _begin(self, message: Begin) -> None:
        super()._begin(message)
        assert self._site is not None
        self._site.noise = self._site.noise if self.noise is None else self.noise


def members_of(
    clients: Sequence[np.ndarray], folder: Path, rules: Rules = OPEN, labels: Any = None
) -> list[Simulated]:
    """Return a member for each client, with a folder of its own."""
    found = []
    for i, samples in enumerate(clients):
        own = Clients([samples], labels=None if labels is None else [labels[i]])

        def read(columns: Any, own: Clients = own) -> Data:
            return Data(own)

        folder.joinpath(str(i)).mkdir(parents=True, exist_ok=True)
        found.append(Simulated(f"site{i}", "job", rules, read, folder / str(i), "1"))
    return found


def engine(setup: Any) -> Flare:
    """Let all clients of a federation be members in this process, which answer evaluation."""
    folder = Path(tempfile.mkdtemp())
    members = members_of(list(setup.clients), folder, labels=setup.clients.labels)
    for member in members:
        member.noise = setup.noise
    group = Group([member.name for member in members], Near(members), evaluation=True)
    return Flare(dataclasses.replace(setup, noise=None), group)


def over(rows: Any, folder: Any, rules: Rules = CLOSED, evaluation: bool = False) -> Any:
    """Return a group of members in this process, its link, and a federation's engine."""
    members = members_of(rows, folder, rules)
    link = Near(members)
    group = Group([member.name for member in members], link, evaluation=evaluation)
    return group, link, partial(Flare, group=group)


def guarded(most: float, **policy: Any) -> Rules:
    return Rules(Policy(most, **({"modules": None} | policy)), 1e-4, tell_samples=False)


def noisy(data: Any, state: Any, message: Any) -> np.ndarray:
    return state.privacy.gaussian(data.sum(axis=0), sensitivity=1.0, noise_multiplier=4.0)


def bare(data: Any, state: Any, message: Any) -> np.ndarray:
    return data.sum(axis=0)


def remembers(data: Any, state: Any, message: Any) -> np.ndarray:
    state.heard = [*getattr(state, "heard", []), message]
    return np.array(len(state.heard))

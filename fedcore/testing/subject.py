"""Run an algorithm that is being checked, on small data."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fedcore import metrics
from fedcore.algorithms import Algorithm
from fedcore.federation.ledger import Ledger, Shape
from fedcore.history import History, units_of
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.problems.tasks import shared_basis
from fedcore.recorder import Recorder, Recording
from fedcore.runs import execute, subtract_mean
from fedcore.sparse import SparseRows
from fedcore.stop_rules import StopRule
from fedcore.testing.cases import Case
from fedcore.testing.samples import RANK, held_out, images, labels_of, uneven_clients

NETWORK = {"model": "tiny_mlp", "rounds": 3, "rate": 0.1, "batch": 4, "epochs": 2}


@dataclass(frozen=True)
class FinishedRun:
    """A finished run of an algorithm, with its settings, recorder, output and history."""

    algorithm: Algorithm
    settings: Any
    recorder: Recorder
    output: dict[str, Any]
    history: History

    @property
    def ledger(self) -> Ledger:
        """Return the ledger, which has counted the run's traffic."""
        return self.recorder.ledger

    @cached_property
    def columns(self) -> dict[str, np.ndarray]:
        """Return the recorded columns, each with one value per recorded iteration."""
        return self.recorder.columns()

    @cached_property
    def basis(self) -> np.ndarray:
        """Return the (d, r) orthonormal basis of the learnt subspace."""
        return shared_basis(self.output)

    @property
    def shared(self) -> np.ndarray:
        """Return the matrix V of U Vᵀ, or the orthonormal basis if the method has no V."""
        return self.output["V"] if "V" in self.output else self.output["basis"]

    @cached_property
    def arrays(self) -> list[bytes]:
        """Return the bytes of every array that the algorithm returned."""
        parts = [
            (name, part)
            for name, value in sorted(self.output.items())
            for part in (value if isinstance(value, list | tuple) else [value])
        ]
        return [
            f"{name} {part.dtype} {part.shape}".encode() + part.tobytes()
            for name, part in parts
            if isinstance(part, np.ndarray)
        ]

    @cached_property
    def content(self) -> bytes:
        """Return the bytes of the history's HDF5 file."""
        with tempfile.TemporaryDirectory() as folder:
            self.history.save(Path(folder, "history.h5"))
            return Path(folder, "history.h5").read_bytes()


@dataclass(frozen=True)
class Subject:
    """An algorithm that is being checked, and its `Case`."""

    algorithm: Algorithm
    case: Case

    @property
    def subspace(self) -> bool:
        """Return whether the algorithm learns a subspace."""
        return "n_components" in self.algorithm.task.fields

    @property
    def clients(self) -> Clients:
        """Return clients with few samples each, with labels if the algorithm needs labels."""
        return self.clients_of(uneven_clients()) if self.subspace else images()

    def clients_of(self, matrices: Sequence[np.ndarray]) -> Clients:
        """Return clients with these samples, and with labels if the algorithm needs labels."""
        labels = labels_of(matrices) if self.algorithm.labelled else None
        return Clients(matrices, labels=labels)

    def problem(self, clients: Clients) -> Problem:
        """Return the clients' data as a `Problem`, with test samples if no subspace is learnt."""
        apart = (
            None if self.subspace else held_out([len(c) for c in clients], dtype=clients.dtypes[0])
        )
        return Problem("contract", clients, held_out=apart)

    def settings(self, clients: Clients, options: Mapping[str, Any]) -> Any:
        """Return a run's parameters: the checks' usual values, changed or extended by `options`."""
        if not self.subspace:
            known = {k: v for k, v in NETWORK.items() if self.algorithm.takes(k)}
            return self.algorithm.params({**known, **options})
        dense = [c.toarray() if isinstance(c, SparseRows) else c for c in clients]
        needs = self.case.needs(np.vstack(dense), RANK)
        return self.algorithm.params({"n_components": RANK, **needs, **options})

    def run(
        self,
        clients: Sequence[np.ndarray] | None = None,
        seed: int = 5,
        measure: Sequence[str] | None = None,
        *,
        iterates: str = "none",
        stop: StopRule | None = None,
        center: bool = False,
        **params: Any,
    ) -> FinishedRun:
        """Run the algorithm once by `fedcore.runs.execute`."""
        data = self.clients if clients is None else clients
        data = data if isinstance(data, Clients) else self.clients_of(data)
        names = self.algorithm.task.printed if measure is None else measure
        measured = [metrics.get(name) for name in names]
        settings = self.settings(data, params)
        recorder, output = execute(
            self.algorithm, self.problem(data), settings, seed,
            Recording(measured, iterates, stop=stop),
            begin=[subtract_mean] * center, noise=np.random.SeedSequence(seed),
        )  # fmt: skip
        units = units_of(measured, self.algorithm.columns)
        history = History.from_run(recorder, output, units)
        return FinishedRun(self.algorithm, settings, recorder, output, history)


def shape_of(clients: Sequence[np.ndarray]) -> Shape:
    """Return the numbers of clients, samples and features as a `Shape`."""
    return Shape(len(clients), sum(map(len, clients)), clients[0].shape[1])

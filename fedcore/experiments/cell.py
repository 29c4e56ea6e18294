"""What a cell of an experiment is: an algorithm with fixed parameters on one problem."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from fedcore import algorithms, metrics
from fedcore.experiments.fingerprint import fingerprint
from fedcore.experiments.repeats import AUDITS, NEWCOMERS
from fedcore.metrics import Metric


@dataclass(frozen=True)
class Cell:
    """An algorithm with fixed parameters on one problem; see `repeats.run_cell`.

    ``recipes`` are those of the files of its `problems`, see `build.recipe`.
    """

    paper: str
    experiment: str
    algorithm: str
    name: str
    problem: str
    params: dict[str, Any]
    repeats: int
    metrics: list[str]
    iterates: str
    seed: int
    stop: dict[str, dict[str, float]] = field(default_factory=dict)
    audit: str | None = None
    tune: dict[str, Any] | None = None
    together: bool = False
    twin: str = "none"
    weaken: float | None = None
    measured: dict[str, int] = field(default_factory=dict)
    tags: dict[str, Any] = field(default_factory=dict)
    mem_mb: int | None = None
    newcomers: dict[str, Any] | None = None
    client_iterates: bool = False
    recipes: list[str] = field(default_factory=list)

    @property
    def path(self) -> str:
        """Path of its history below the folder of histories, without the ending."""
        return f"{self.paper}/{self.short}"

    @property
    def short(self) -> str:
        """Its path below the folder of its paper, as in ``leave_out``."""
        return f"{self.experiment}/{self.algorithm}/{self.name}"

    @property
    def code(self) -> str:
        """Fingerprint of all code that its history depends on."""
        return fingerprint(*self.modules, words=self._words)

    @property
    def modules(self) -> list[str]:
        """Modules and functions whose code its history depends on."""
        functions = {metric.code for metric in self._measured}
        algorithm = algorithms.REGISTRY.module_name(self.algorithm)
        audit = [AUDITS[self.audit]] if self.audit else []
        newcomers = [NEWCOMERS] if self.newcomers else []
        cell = "fedcore.experiments.repeats"
        return [cell, algorithm, *functions, *audit, *newcomers]

    @property
    def problems(self) -> list[str]:
        """Names of the problems whose files it reads: its own, and that of its newcomers."""
        return [self.problem, *([self.newcomers["problem"]] if self.newcomers else [])]

    @property
    def _measured(self) -> list[Metric]:
        names = [*self.metrics, *([self.tune["by"]] if self.tune else [])]
        return [metrics.get(name) for name in names]

    @property
    def _words(self) -> list[str]:
        """What a history says of its measures."""
        return sorted(
            f"{m.name} {m.units} {m.description} {m.code.rpartition('.')[2]} {m.finite}"
            for m in set(self._measured)
        )

    def spec(self) -> dict[str, Any]:
        """Return as a plain dictionary what its history depends on: not its tags and memory."""
        unused = ("tags", "mem_mb", *(() if self.newcomers else ("newcomers",)))
        return {name: value for name, value in asdict(self).items() if name not in unused}

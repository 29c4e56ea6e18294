"""Reading what a run of the workflow left: the plan of a paper and the histories of its cells."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from fedcore.errors import DataError
from fedcore.files import checksums
from fedcore.history import History


class Results:
    """Histories of one paper, read when first asked for.

    Parameters
    ----------
    plan : path-like
        File ``<results>/plans/<paper>.json``; the histories lie in ``<results>/histories``.

    Attributes
    ----------
    plan : dict
        Title, problems, experiments, figures, cells, and the problems that could not be had.
    """

    def __init__(self, plan: str | os.PathLike[str]) -> None:
        checksums.require(plan, "plan")
        try:
            self.plan: dict[str, Any] = json.loads(Path(plan).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(f"{plan} is not a plan ({error}); run snakemake to make it") from error
        self._folder = Path(plan).parents[1]
        self._read: dict[str, History] = {}

    def __getitem__(self, cell: str) -> History:
        """Return the history of the cell ``<experiment>/<algorithm>/<problem>-<variant>``."""
        if cell not in self._read:
            path = self._folder / "histories" / self.plan["paper"] / f"{cell}.h5"
            self._read[cell] = History.load(path)
        return self._read[cell]

    def select(
        self, experiment: str, algorithm: str | None = None
    ) -> Iterator[tuple[str, str, str, History]]:
        """Yield (problem, algorithm, variant, history) of an experiment's cells, in plan order."""
        for cell in self.plan["cells"].values():
            if cell["experiment"] != experiment or algorithm not in (None, cell["algorithm"]):
                continue
            name = f"{experiment}/{cell['algorithm']}/{cell['name']}"
            variant = cell["name"].removeprefix(f"{cell['problem']}-")
            yield cell["problem"], cell["algorithm"], variant, self[name]

    def problems(self, experiment: str) -> list[str]:
        """Return the problems of an experiment that have been run, in the order of the plan."""
        cells = self.plan["cells"].values()
        run = {cell["problem"] for cell in cells if cell["experiment"] == experiment}
        return [name for name in self.plan["problems"] if name in run]

    def label(self, problem: str) -> str:
        """Return what figures and tables call a problem."""
        return self.plan["problems"][problem].get("label", problem)

    @cached_property
    def figures(self) -> Path:
        """Folder of this paper's figures."""
        return self._folder / "figures" / self.plan["paper"]

    @cached_property
    def tables(self) -> Path:
        """Folder of this paper's tables."""
        return self._folder / "tables" / self.plan["paper"]

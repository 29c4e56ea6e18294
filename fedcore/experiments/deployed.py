"""The server's program of a run over NVIDIA FLARE: from a task to a history, whole or marked.

The history has what `fedcore run` writes, without what only the clients' data can tell. A run that
ends early leaves the records so far under another name, with the reason, and never the final name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fedcore import algorithms, metrics
from fedcore.experiments import provenance
from fedcore.experiments.cell import repeat_seed, trial
from fedcore.experiments.deployment import Task
from fedcore.experiments.from_files import NAME
from fedcore.experiments.plan import Cell
from fedcore.federation.engine import everywhere
from fedcore.federation.flare import Flare
from fedcore.federation.flare_group import Group, Link, Remote
from fedcore.files import atomic
from fedcore.history import History
from fedcore.problems.problem import Problem

HISTORY, INCOMPLETE = "history.h5", "history.incomplete.h5"
FAILED, TRAFFIC = "failed.txt", "traffic.json"


def lead(task: Task, link: Link, folder: Path) -> None:
    """Run a task over a link, and write its history and its traffic into a folder.

    Raises
    ------
    Exception
        What has ended the run early. The folder then has its sentence, and the records so far as an
        incomplete history, if there are any.
    """
    group = Group(task.sites, link, evaluation=task.evaluation)
    run = _Run(task, group)
    try:
        history = run.history()
    except BaseException as error:
        said = " ".join(str(error).split()) or type(error).__name__
        with atomic.replace(folder / FAILED) as temporary:
            temporary.write_text(said + "\n", encoding="utf-8")
        if (partly := run.incomplete(said)) is not None:
            partly.save(folder / INCOMPLETE)
        raise
    history.save(folder / HISTORY)
    with atomic.replace(folder / TRAFFIC) as temporary:
        temporary.write_text(json.dumps(group.traffic(), indent=1) + "\n", encoding="utf-8")


class _Run:
    """All repeats of a task, and what they have recorded so far."""

    def __init__(self, task: Task, group: Group) -> None:
        self._task, self._group = task, group
        self._algorithm = algorithms.get(task.algorithm)
        self._about: dict[str, Any] = {"algorithm": task.algorithm, "params": task.params}
        self._rows: list[list[dict[str, float]]] = []

    def history(self) -> History:
        """Run all repeats and return their history."""
        task, group = self._task, self._group
        remote = group.join()
        cell = self._cell(remote)
        problem = Problem(" ".join(task.sites), remote, "own")
        measure = [metrics.get(name) for name in task.metrics]
        self._about = self._facts(cell, remote)
        runs = []
        with everywhere(partial(Flare, group=group)):
            for repeat in range(task.repeats):
                self._rows.append([])
                recorder, output = trial(
                    cell.spec(), [problem], task.params, repeat, measure,
                    simulate=False, center=task.center, stop=self._see,
                )  # fmt: skip
                group.transport.finish(output)
                runs.append((recorder, output))
        recorders, outputs = zip(*runs, strict=True)
        about = dict(self._about)
        if recorders[0].ledger.privacy is not None:
            about["privacy"] = provenance.privacy(recorders)
        counts = dict(self._algorithm.columns)
        return History.from_runs(recorders, outputs, metrics=measure, about=about, counts=counts)

    def incomplete(self, said: str) -> History | None:
        """Return what was recorded until an error, marked; None without a record.

        Of a private run these are released columns alone.
        """
        rows = [rows for rows in self._rows if rows]
        if not rows:
            return None
        length = max(map(len, rows))
        columns = {}
        for name in rows[0][0]:
            whole = isinstance(rows[0][0][name], int)
            padding: Any = -1 if whole else np.nan
            columns[name] = np.array(
                [[row[name] for row in one] + [padding] * (length - len(one)) for one in rows]
            )
        return History(columns, about={**self._about, "incomplete": said})

    def _see(self, row: Mapping[str, float]) -> bool:
        """Take notice of a recorded row; nothing of it ends the run."""
        self._rows[-1].append(dict(row))
        return False

    def _cell(self, remote: Remote) -> Cell:
        """Return the cell of the same random streams as those of `fedcore run` on these data."""
        task = self._task
        return Cell(
            "command line", "run", task.algorithm, " ".join(task.sites), remote.name or NAME,
            task.params, task.repeats, list(task.metrics), "last", task.seed,
        )  # fmt: skip

    def _facts(self, cell: Cell, remote: Remote) -> dict[str, Any]:
        """Return a history's provenance; checksums of data stay with the data."""
        task = self._task
        return {
            **{key: cell.spec()[key] for key in ("paper", "experiment", "algorithm", "name")},
            "params": task.params,
            **({"centred": True} if task.center else {}),
            "engine": "flare",
            "problem": {
                "name": " ".join(task.sites),
                "status": "own",
                "note": "",
                "n_clients": len(remote),
                **({"n_samples": remote.n_samples} if remote.told else {}),
                "n_features": remote.n_features,
            },
            "seed": {
                "master": task.seed,
                "spawn_key": [repeat_seed(cell.spec(), 0).spawn_key[0], "repeat"],
            },
            "code": cell.code,
            "versions": provenance.versions(self._algorithm.task.packages),
        }

"""Run all repeats of one cell, which is an algorithm with fixed parameters on one problem.

Each cell produces one history file (a record of its runs). Repeats on the same random draw of the
problem's data differ only in their random streams. A repeat's random stream depends on master seed,
paper, experiment, problem and repeat number, but not on the algorithm. Competing algorithms
therefore get the same data, random sketching matrices and starting matrices. In a simulation,
privacy noise depends on the repeat's seed, the algorithm, the cell and the parameters; see
`fedcore.privacy.noise`.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from fedcore import algorithms, metrics, snapshots
from fedcore.errors import ConfigError, require_known
from fedcore.experiments import provenance, tuning, twins
from fedcore.experiments.axes import execute_cut
from fedcore.experiments.cell import AUDITS, NEWCOMERS, Cell, resolve
from fedcore.experiments.checkpoint import Checkpoint
from fedcore.federation import lockstep
from fedcore.federation.ledger import Shape
from fedcore.federation.transcript import Transcript
from fedcore.history import History, save_seconds, units_of
from fedcore.privacy.noise import Source, Weakened, simulated
from fedcore.problems import storage
from fedcore.problems.problem import Problem
from fedcore.recorder import Recorder, Recording, call_now
from fedcore.runs import execute, subtract_mean
from fedcore.stop_rules import StopRules


def run_cell(
    cell: Cell,
    problem_file: str | os.PathLike[str],
    history_file: str | os.PathLike[str],
    seconds_file: str | os.PathLike[str] | None = None,
    *,
    checkpoints: str | os.PathLike[str] | None = None,
    newcomers_file: str | os.PathLike[str] | None = None,
    progress: Callable[[Any], Any] = iter,
) -> History:
    """Run a cell on the problem in `problem_file`, write the record of its runs, and return it.

    A cell is an algorithm with fixed parameters on one problem (client data). `newcomers_file`
    holds the data of clients that join after training, if the cell has any. CPU seconds are written
    to the separate file `seconds_file`, so that equal runs give equal history files. The paths of
    checkpoints, and of the records of finished runs, begin with `checkpoints`.
    """
    recipes = cell.recipes or ["", ""]
    draws, kept = storage.load_draws(problem_file, recipe=recipes[0]), []
    if checkpoints is not None:
        packages = algorithms.get(cell.algorithm).task.packages
        where, spec = provenance.device(packages), cell.spec()
        del spec["repeats"]
        code = [cell.code, *cell.recipes]
        versions = provenance.versions(packages)
        text = json.dumps([spec, code, checksum(draws), versions, *where.values()], sort_keys=True)
        key = hashlib.sha256(text.encode()).hexdigest()
        kept = [Checkpoint(f"{checkpoints}.{i}.h5", key) for i in range(cell.repeats)]
    newcomers = None
    if newcomers_file is not None:
        newcomers = storage.load_draws(newcomers_file, recipe=recipes[1])[0]
    history = run_repeats(cell, draws, progress=progress, checkpoints=kept, newcomers=newcomers)
    if seconds_file is not None:
        save_seconds(history, seconds_file)
    history.save(history_file)
    for checkpoint in kept:
        checkpoint.remove()
    return history


def run_repeats(
    cell: Cell,
    draws: Sequence[Problem],
    *,
    progress: Callable[[Any], Any] = iter,
    checkpoints: Sequence[Checkpoint] = (),
    seen: Callable[[Mapping[str, float]], Any] | None = None,
    newcomers: Problem | None = None,
    keep_exact: bool = False,
) -> History:
    """Run all repeats (runs) of a cell and return their record; over MPI, only rank 0 returns.

    Parameters
    ----------
    cell : Cell
        If ``cell.center`` is true, the exact solution in the history is that of the centred data.
    draws : sequence of Problem
        Random draws of the cell's problem. Repeat i runs on draw i modulo the number of draws.
    progress : callable
        Function that wraps the iteration over the repeats, for instance in a progress bar.
    checkpoints : sequence of Checkpoint, optional
        One checkpoint per repeat.
    seen : callable, optional
        Function that is called with every recorded row, for instance to count rounds. In a private
        run, the row has only the columns that an observer of the messages knows.
    newcomers : Problem, optional
        Problem of the clients that join after training, named by the cell's setting ``newcomers``.
    keep_exact : bool, default=False
        Whether a private run with real noise keeps values that its privacy guarantee does not
        cover.
    """
    history = _Repeats(cell, draws, checkpoints, seen, newcomers).run(progress)
    if history.released is None or cell.simulate:
        return history
    if keep_exact:
        history.about["privacy"]["not_released"] = history.protected
        return history
    return history.released_alone()


Run = tuple[Recorder, dict[str, Any]]  # what a run recorded, and what it returned


class _Repeats:
    """All repeats (runs) of a cell, with settings that are fixed before the first repeat begins.

    The constructor searches the grid of the cell's setting ``tune``, so that all repeats use the
    same chosen values.
    """

    def __init__(
        self,
        cell: Cell,
        draws: Sequence[Problem],
        checkpoints: Sequence[Checkpoint],
        seen: Callable[[Mapping[str, float]], Any] | None,
        newcomers: Problem | None,
    ) -> None:
        self._cell, self._draws, self._checkpoints, self._seen = cell, draws, checkpoints, seen
        self._algorithm = algorithms.get(cell.algorithm)
        self._tuned = tuning.tune(cell, draws, trial) if cell.tune else None
        self._params = {**cell.params, **(self._tuned["chosen"] if self._tuned else {})}
        self._measure = [metrics.get(name) for name in cell.metrics]
        self._audit = audit_module(cell.audit) if cell.audit else None
        twinned = cell.twin != "none"
        self._pairs = [twins.TwinDistance() for _ in range(cell.repeats)] if twinned else []
        self._guests = _newcomers(cell, self._algorithm, self._params, draws[0], newcomers)
        self._about = self._provenance()
        self._room = snapshots.LIMIT
        self._found: dict[int, History] = {}  # of the repeats that have ended
        counts = dict(self._algorithm.columns)
        if cell.audit and self._audit:
            counts[cell.audit] = self._audit.COLUMN
        if self._pairs:
            counts[twins.DISTANCE] = twins.COLUMN
        self._units = units_of(self._measure, counts)
        if self._guests:
            self._units[self._guests.NAME] = self._guests.TEXT

    def run(self, progress: Callable[[Any], Any]) -> History:
        """Run the repeats that have no saved history (record), one by one or in blocks.

        Over MPI, all ranks run the repeats, and only rank 0 makes histories.
        """
        once: Callable[..., Any] = call_now
        width = lockstep.WIDTH if self._cell.share_products else 1
        for first in progress(range(0, self._cell.repeats, width)):  # it closes before an error
            block = range(first, min(first + width, self._cell.repeats))
            self._found |= self._ended(block)
            missing = [repeat for repeat in block if repeat not in self._found]
            if missing:
                began = time.process_time()
                runs, others = self._run_block(missing)
                each = (time.process_time() - began) / len(missing)
                once = runs[0][0].once
                once(partial(self._keep, missing, runs, others, each))
            found = [self._found[repeat] for repeat in block if repeat in self._found]
            self._room -= sum(one.iterates["shared"].nbytes for one in found if one.iterates)
        return once(self._joined, last=True)

    def _ended(self, block: Iterable[int]) -> dict[int, History]:
        """Return the saved histories (records) of those repeats in `block` that have one."""
        if not self._checkpoints:
            return {}
        params = json.loads(json.dumps(self._params))
        kept = {repeat: self._checkpoints[repeat].finished() for repeat in block}
        return {
            repeat: history
            for repeat, history in kept.items()
            if history is not None and history.about["params"] == params
        }

    def _run_block(self, block: Sequence[int]) -> tuple[list[Run], list[Run]]:
        """Run repeats and their twins (second runs), side by side if they share matrix products."""
        ways = (self._repeat, self._twin) if self._pairs else (self._repeat,)
        calls = [partial(way, repeat) for way in ways for repeat in block]
        if self._cell.share_products:
            places = [repeat % lockstep.WIDTH for repeat in block]
            slots = [lane * lockstep.WIDTH + i for lane in range(len(ways)) for i in places]
            every = lockstep.run_all(calls, slots)
        else:
            every = [call() for call in calls]
        runs, others = every[: len(block)], every[len(block) :]
        pairs = zip(block, runs, others, strict=False)
        return runs, [self._furthest(*pair) for pair in pairs]

    def _keep(
        self, block: Sequence[int], runs: Sequence[Run], others: Sequence[Run], seconds: float
    ) -> None:
        """Make the history of each repeat in a block; `seconds` is the CPU time per repeat."""
        for i, (repeat, run) in enumerate(zip(block, runs, strict=True)):
            twin = others[i][0] if others else None
            self._found[repeat] = self._history(repeat, run, twin)
            secret = run[0].ledger.privacy is not None and not self._cell.simulate
            if self._checkpoints and not secret:  # the key would tell of the data
                self._checkpoints[repeat].finish(self._found[repeat], seconds)

    def _joined(self) -> History:
        """Join the histories (records) of all repeats into the history of the cell."""
        found = [self._found[repeat] for repeat in range(self._cell.repeats)]
        return History.joined(found, self._about, self._units)

    def _history(self, repeat: int, run: Run, twin: Recorder | None) -> History:
        """Return the history (record) of one repeat and of its twin (second run), if any."""
        recorder, output = run
        if self._pairs:
            recorder.add(twins.DISTANCE, self._pairs[repeat].column(len(recorder.rows)))
        if recorder.ledger.privacy is not None:
            self._about["privacy"] = recorder.ledger.privacy.about()
            if self._tuned:
                self._tuned["note"] = tuning.UNPAID_NOTE
        return History.from_run(
            recorder,
            output,
            self._units,
            reference=self._answers(recorder),
            about=self._about,
            twin=twin,
        )

    def _answers(self, recorder: Recorder) -> dict[str, np.ndarray]:
        """Return the exact solution for the history; solutions of several draws are stacked."""
        draws = [recorder.problem] if self._cell.center else self._draws
        answers = [dict(draw.answer) for draw in draws]
        kept = recorder.snapshots.kept
        if kept and kept[-1].shared.ndim == 2:
            columns = max(one.shared.shape[1] for one in kept)
            for draw, answer in zip(draws, answers, strict=True):
                answer |= draw.directions(columns)
        if len(answers) == 1:
            return answers[0]
        stacked = {}
        for name, first in answers[0].items():
            # Draws of other sizes have no place in the stack, nor have the iterates on them.
            shapes = [answer[name].shape == first.shape for answer in answers]
            alike = (*shapes, False).index(False)
            stacked[name] = np.stack([answer[name] for answer in answers[:alike]])
        return stacked

    def _repeat(self, repeat: int) -> Run:
        """Run a repeat, its audit and the clients that join later; drop the large output ``U``."""
        cell, transcript = self._cell, self._audit.start_transcript() if self._audit else None
        recorder, output = trial(
            cell, self._draws, self._params, repeat, self._recording(repeat, twin=False),
            transcript=transcript,
        )  # fmt: skip
        if cell.audit and self._audit:
            own = self._draws[repeat % len(self._draws)]
            recorder.add(cell.audit, self._audit.column(own, transcript, recorder))
        final = {key: value for key, value in output.items() if key != "U"}
        if self._guests:
            final[self._guests.NAME] = self._guests.accuracies(output, cell.repeat_seed(repeat))
        return recorder, final

    def _twin(self, repeat: int, pattern: int = 0) -> Run:
        """Run the twin of a repeat: the same run from a starting matrix changed by one rounding."""
        recording = self._recording(repeat, twin=True)
        return trial(
            self._cell, self._draws, self._params, repeat,
            replace(recording, on_iterate=None) if pattern else recording,
            algorithm=twins.perturbed(self._algorithm, pattern),
        )  # fmt: skip

    def _furthest(self, repeat: int, run: Run, twin: Run) -> Run:
        """Return the twin (second run) whose number of recorded rows differs most from `run`."""
        most = twins.KINDS[self._cell.twin] if self._pairs[repeat].torn else 1
        every = [twin, *(self._twin(repeat, pattern) for pattern in range(1, most))]
        return max(every, key=lambda other: abs(len(other[0].rows) - len(run[0].rows)))

    def _recording(self, repeat: int, *, twin: bool) -> Recording:
        """Return the settings with which a repeat is recorded, such as metrics and stop rule."""
        cell, rule = self._cell, StopRules(self._cell.stop) if self._cell.stop else None
        return Recording(
            self._measure,
            iterates="none" if twin or self._room <= 0 else cell.iterates,
            client_iterates=cell.client_iterates and not twin and not repeat,
            stop=rule if self._seen is None else partial(_after, self._seen, rule),
            measured=cell.measured,
            on_iterate=partial(self._pairs[repeat].see, twin) if self._pairs else None,
            checkpoint=self._checkpoints[repeat] if self._checkpoints and not twin else None,
        )

    def _provenance(self) -> dict[str, Any]:
        """Return the facts about cell, problem, seeds and versions for the history."""
        cell, packages = self._cell, self._algorithm.task.packages
        return {
            **{key: getattr(cell, key) for key in ("paper", "experiment", "algorithm", "name")},
            "params": self._params,
            **({"tuning": self._tuned} if self._tuned else {}),
            **({"twin": cell.twin} if self._pairs else {}),
            **({"centred": True} if cell.center else {}),
            **({"cut": cell.cut} if cell.cut is not None else {}),
            **({"newcomers": self._guests.about} if self._guests else {}),
            "problem": _facts(self._draws),
            "seed": {"master": cell.seed, "spawn_key": [cell.seed_key, "repeat"]},
            "references": self._algorithm.citation,
            "commit": provenance.own_commit(),
            "code": cell.code,
            **({"recipes": cell.recipes} if cell.recipes else {}),
            "versions": provenance.versions(packages),
            **provenance.device(packages),
        }


def _facts(draws: Sequence[Problem]) -> dict[str, Any]:
    """Return the facts about the problem that the history stores, such as its sizes."""
    problem = draws[0]
    return {
        "name": problem.name,
        "status": problem.status,
        "note": problem.note,
        "settings": [draw.setting for draw in draws],
        "sha256": checksum(draws),
        "n_clients": len(problem.clients),
        "n_samples": problem.n_samples,
        "n_features": problem.n_features,
    }


def _newcomers(
    cell: Cell,
    algorithm: algorithms.Algorithm,
    params: Mapping[str, Any],
    problem: Problem,
    newcomers: Problem | None,
) -> Any:
    """Return the clients that join after training, as checked `Newcomers`, or None."""
    if not cell.newcomers:
        return None
    if newcomers is None:
        raise ConfigError(
            f"this cell has newcomers = {cell.newcomers}: give the file of that problem"
        )
    settings = algorithm.params(resolve(params, problem))
    shape = Shape(len(problem.clients), problem.n_samples, problem.n_features)
    cost, epochs = algorithm.communication(settings, shape), cell.newcomers["epochs"]
    made = importlib.import_module(NEWCOMERS).Newcomers
    return made(settings, cost, problem.n_features, newcomers, epochs)


def _after(
    seen: Callable[[Mapping[str, float]], Any], rule: StopRules | None, row: Mapping[str, float]
) -> bool:
    """Pass a row to `seen`, and then return whether the stop rule ends the run."""
    seen(row)
    return rule is not None and rule(row)


def trial(
    cell: Cell,
    draws: Sequence[Problem],
    params: Mapping[str, Any],
    repeat: int,
    recording: Recording,
    *,
    algorithm: algorithms.Algorithm | None = None,
    transcript: Transcript | None = None,
) -> tuple[Recorder, dict[str, Any]]:
    """Run repeat number `repeat` with `params`, on draw `repeat` modulo the number of draws.

    A repeat is one run of the cell's algorithm, and a draw is one random instance of the cell's
    problem. If `algorithm` is given, it replaces the cell's own algorithm.
    """
    algorithm = algorithm or algorithms.get(cell.algorithm)
    problem = draws[repeat % len(draws)]
    settings, seed = algorithm.params(resolve(params, problem)), cell.repeat_seed(repeat)
    if cell.cut is not None:
        if cell.center or cell.audit:
            raise ConfigError(
                f"{cell.short} has 'cut', but its audit or centring needs all features: leave out "
                "'cut'"
            )
        return execute_cut(algorithm, problem, settings, seed, recording, cell.cut)
    noise: Source | None = simulated(seed, cell.short, params) if cell.simulate else None
    if cell.noise_factor:
        noise = Weakened(simulated(seed, cell.short, params), cell.noise_factor)
    return execute(
        algorithm, problem, settings, seed, recording,
        begin=[subtract_mean] * cell.center, transcript=transcript, noise=noise,
    )  # fmt: skip


def audit_module(name: str) -> ModuleType:
    """Return the module in `fedcore.audits` that implements an audit (an attack on a run).

    The module's ``start_transcript() -> Transcript`` returns an object that records the uploads of
    a run. The module's ``column(problem, transcript, recorder) -> list`` computes a column of the
    history from the transcript. The module's ``COLUMN`` holds the column's units and description.
    """
    require_known(name, AUDITS, "unknown audit")
    return importlib.import_module(AUDITS[name])


def checksum(draws: Sequence[Problem]) -> str:
    """Return the checksum of a problem, or the SHA-256 of its several random draws' checksums."""
    sums = [draw.checksum for draw in draws]
    return sums[0] if len(sums) == 1 else hashlib.sha256("".join(sums).encode()).hexdigest()

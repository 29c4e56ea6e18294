"""A cell over MPI: its job starts the ranks, and the first of them runs the cell.

``python -m fedcore.experiments.ranks`` is what every rank runs; the first reads from standard input
what to do, as JSON. What a cell over MPI gives is what one process gives that runs steps client by
client. It has no checkpoints, and its seconds are those of the first rank.
"""

from __future__ import annotations

import faulthandler
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from fedcore.errors import ConfigError, FedcoreError, InputError
from fedcore.experiments.cell import run_repeats
from fedcore.experiments.forking import note
from fedcore.experiments.job import settle_device
from fedcore.federation import mpi
from fedcore.federation.mpi_link import started_as
from fedcore.federation.team import Team
from fedcore.history import save_seconds
from fedcore.problems import storage

ERROR = "Error: "


class Ranks(NamedTuple):
    """How a cell runs over MPI.

    Attributes
    ----------
    number : int
        0 for a cell in one process.
    order : {"chain", "any"}
        Of sums; with "any" the last digits depend on the number.
    """

    number: int = 0
    order: str = "chain"


ONE_PROCESS = Ranks()


def asked(run: Mapping[str, Any], spec: Mapping[str, Any], where: str) -> Ranks:
    """Read ``engine``, ``ranks`` and ``order`` of a run in an experiment's specification.

    Raises
    ------
    ConfigError
        When they do not fit together, or the experiment advances its repeats side by side.
    """
    over_mpi = run.get("engine") == "mpi"
    for key in ("ranks", "order"):
        if key in run and not over_mpi:
            raise ConfigError(f"{where}: '{key}' is for 'engine: mpi'")
    if not over_mpi:
        return ONE_PROCESS
    if "ranks" not in run:
        raise ConfigError(f"{where}: 'engine: mpi' needs 'ranks', their number")
    if spec.get("together"):
        raise ConfigError(f"{where}: 'together' is for one process: take it or 'engine: mpi' out")
    if spec.get("newcomers"):
        raise ConfigError(f"{where}: 'newcomers' are for one process: take 'engine: mpi' out")
    return Ranks(run["ranks"], run.get("order", "chain"))


def launch(
    cell: Mapping[str, Any],
    problem_file: str,
    history_file: str,
    seconds_file: str,
    *,
    ranks: tuple[int, str],
    code: str,
    used: str,
) -> None:
    """Run a cell over ranks of MPI, and wait for their end.

    Parameters
    ----------
    cell, problem_file, history_file, seconds_file, code
        As of `fedcore.experiments.cell.run_cell`.
    ranks : Ranks
        Or a tuple with its fields.
    used : str
        File for seconds, and for CPU seconds and memory of all ranks together.

    Raises
    ------
    FedcoreError
        What the first rank says, or that the ranks were killed.
    """
    number, order = ranks
    files = dict(problem=problem_file, history=history_file, seconds=seconds_file)
    told = json.dumps({"cell": cell, **files, "code": code, "order": order, "used": used})
    command = [_launcher(), "-n", str(number), sys.executable, "-m", __name__]
    sentence = ""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True, errors="replace",
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stderr is not None
        try:
            process.stdin.write(told)
            process.stdin.close()
            for line in process.stderr:
                if line.startswith(ERROR):
                    sentence = line.removeprefix(ERROR).strip()
                else:
                    sys.stderr.write(line)
            status = process.wait()
        except BaseException:
            process.terminate()  # it ends the ranks
            raise
    if status:
        ended = f"signal {-status}" if status < 0 else f"status {status}"
        killed = f"the ranks of MPI ended with {ended}: one was killed, or could not start"
        raise FedcoreError(sentence or killed)


def _launcher() -> str:
    """Return the path of mpiexec, of this environment if it has one."""
    own = Path(sys.executable).with_name("mpiexec")
    found = str(own) if os.access(own, os.X_OK) else shutil.which("mpiexec")
    if found is None:
        raise InputError(
            "the engine mpi needs mpiexec: pip install mpi4py mpich, or make mpi in fedcore's "
            "checkout"
        )
    return found


def _run(team: Team) -> None:
    """Run the cell that standard input names, on the first rank."""
    start, about = time.perf_counter(), json.load(sys.stdin)
    team.order = about["order"]
    draws = storage.load_draws(about["problem"])
    team.found(about["problem"], [draw.clients for draw in draws])
    history = run_repeats(about["cell"], draws, code=about["code"], progress=tqdm)
    history.about.update(team.about)
    save_seconds(history, about["seconds"])
    history.save(about["history"])
    note(about["used"], time.perf_counter() - start, *team.used())


def main() -> int:
    """Be one rank; return the exit status."""
    faulthandler.enable()  # SIGBUS and the like are named in the job's log
    settle_device()
    try:
        mpi.lead(_run)
    except FedcoreError as error:
        if started_as() == 0:
            print(f"{ERROR}{' '.join(str(error).split())}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

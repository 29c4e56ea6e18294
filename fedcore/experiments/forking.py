"""Jobs in processes that are forked from one that has imported everything.

Most cells of a quick run take less CPU than a Python interpreter needs to import NumPy, SciPy and
dp-accounting. Here one process of Snakemake's own imports them, and every job is a fork of it, with
its own log, memory and end: a job that dies takes no other with it.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from functools import cache
from multiprocessing import connection, forkserver
from multiprocessing.context import ForkServerContext
from typing import Any

from fedcore.errors import FedcoreError
from fedcore.experiments.job import logged, settle_device
from fedcore.files import atomic

# Imported once, before the first job; what is not installed is passed over.
IMPORTS = ["fedcore.experiments.build", "fedcore.experiments.cell"]
REPORTS = ["fedcore.reports.steps", "fedcore.reports.plotting"]  # if a run has jobs after the cells
WARM = "fedcore.experiments.warm"  # imports them
MODULES = "FEDCORE_WARM"  # environment variable that tells it their names
# BLAS and OpenMP read them when they are loaded; more threads are set in the job.
THREADS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)  # fmt: skip

# Snakemake runs jobs from several threads. A process that starts asks for the status of all others,
# which only one thread can read.
LOCK = threading.Lock()
_RUNNING: set[str] = set()  # logs of the jobs that run now
_QUIET: list[bool] = []  # not empty when the terminal has a bar


def running() -> list[str]:
    """Return names of the jobs that run now: the last parts of their logs' paths."""
    return ["/".join(log.removesuffix(".log").split("/")[-2:]) for log in list(_RUNNING)]


def keep_quiet() -> None:
    """Let jobs that fail from now on tell their logs alone, as the terminal has a bar."""
    _QUIET.append(True)


class JobError(FedcoreError):
    """A job of the workflow has failed; its log says why."""


def run(
    task: Callable[..., Any] | str,
    *args: Any,
    log: str,
    benchmark: str | None = None,
    threads: int = 1,
    **options: Any,
) -> None:
    """Call ``task(*args, **options)`` in a process of its own, and wait for its end.

    Parameters
    ----------
    task : callable or str
        A function of a module, as multiprocessing sends it by its name; or ``module:function``, if
        this process does not need the module.
    log : str
        The job's log, see `job.logged`.
    benchmark : str, optional
        File for seconds, CPU seconds and the largest memory in MiB, a table of one row.
    threads : int, default=1
        Threads of BLAS and OpenMP.

    Raises
    ------
    JobError
        When the process ends with another status than 0.
    """
    with LOCK:
        process = _server().Process(
            target=_quiet_job if _QUIET else _job,
            args=(os.getcwd(), log, benchmark, threads, task, args, options),
        )
        with _another_main():
            process.start()
        _RUNNING.add(log)
    connection.wait([process.sentinel])
    with LOCK:
        _RUNNING.discard(log)
        process.join()
    code = process.exitcode or 0
    if code:
        if code == -signal.SIGKILL:
            why = "somebody or, where memory is short, the system has killed it"
        elif code == -signal.SIGBUS:
            why = (
                "a file that it had mapped, such as its large problem in data/clients, was cut off "
                f"or overwritten in place, or a disk failed; {log} says where"
            )
        else:
            why = f"{log} says why"
        ended = f"status {code}" if code > 0 else f"signal {-code}"
        raise JobError(f"the job ended with {ended}: {why}")


@contextlib.contextmanager
def _another_main() -> Iterator[None]:
    """Hide Snakemake's program, which multiprocessing would import in every job."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def also_import(modules: list[str]) -> None:
    """Import more before the first job; without effect after it."""
    IMPORTS.extend(name for name in modules if name not in IMPORTS)


@cache
def _server() -> ForkServerContext:
    """Return the context of the process that has imported everything, which it starts once."""
    context = multiprocessing.get_context("forkserver")
    before = {name: os.environ.get(name) for name in (*THREADS, MODULES)}
    os.environ.update(dict.fromkeys(THREADS, "1") | {MODULES: " ".join(IMPORTS)})
    try:
        context.set_forkserver_preload([WARM])
        forkserver.ensure_running()
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
    return context


def _function(task: Callable[..., Any] | str) -> Callable[..., Any]:
    if not isinstance(task, str):
        return task
    module, _, name = task.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found


def _limited_to(threads: int) -> contextlib.AbstractContextManager[Any]:
    if threads == 1:
        return contextlib.nullcontext()
    from threadpoolctl import threadpool_limits

    return threadpool_limits(threads)


def _quiet_job(folder: str, log: str, *others: Any) -> None:
    """Run a job that keeps off the terminal, unless what it has to say stands in no log."""
    with contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            return _job(folder, log, *others)
        except BaseException as error:
            failed = error
    if os.path.isfile(log):
        sys.exit(failed.code if isinstance(failed, SystemExit) else 1)
    sys.stderr.write(said.getvalue())
    raise failed


def _job(
    folder: str,
    log: str,
    benchmark: str | None,
    threads: int,
    task: Callable[..., Any] | str,
    args: tuple[Any, ...],
    options: dict[str, Any],
) -> None:
    os.chdir(folder)  # multiprocessing starts in the folder in which Snakemake was called
    start = time.perf_counter()
    with logged(log):
        settle_device()
        with _limited_to(threads):
            _function(task)(*args, **options)
        if benchmark is not None:
            used = resource.getrusage(resource.RUSAGE_SELF)
            seconds, cpu = time.perf_counter() - start, used.ru_utime + used.ru_stime
            memory = used.ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)
            note(benchmark, seconds, cpu, memory)


def note(benchmark: str, seconds: float, cpu: float, memory: float) -> None:
    """Write seconds, CPU seconds and MiB of a job, a table of one row."""
    with atomic.replace(benchmark) as path:
        path.write_text(f"s\tcpu_time\tmax_rss\n{seconds:.4f}\t{cpu:.2f}\t{memory:.2f}\n")

"""What carries messages to the clients of a run: the options --engine and --order."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from fedcore.errors import InputError
from fedcore.federation.engines.mpi_link import started_as

if TYPE_CHECKING:
    from fedcore.federation.engines.team import Team

ENGINES = ("in-process", "plain", "mpi")
ORDERS = ("chain", "any")

engine = click.option(
    "--engine", type=click.Choice(ENGINES), default="in-process", show_default=True,
    help="What carries messages: this process, with one step for many clients where that is "
    "faster; plain: client by client; mpi: the ranks that mpiexec has started.",
)  # fmt: skip
order = click.option(
    "--order",
    type=click.Choice(ORDERS),
    default="chain",
    show_default=True,
    help="Of sums over mpi: chain gives the bytes of plain; any leaves the order to MPI.",
)


def mute_other_ranks() -> None:
    """Let the first rank alone print, also what is wrong with a command that all have got."""
    words = sys.argv[1:]
    asked = "--engine=mpi" in words or ("--engine", "mpi") in itertools.pairwise(words)
    if asked and started_as() > 0:
        sys.stdout = sys.stderr = open(os.devnull, "w")


def under(engine: str, order: str, body: Callable[[Team | None], Any]) -> None:
    """Call `body` with all federations over an engine; with ``mpi`` on rank 0, with its team."""
    if engine == "mpi":
        from fedcore.federation.engines import mpi

        mpi.lead(body, order)
        return
    if order != "chain":
        raise InputError(f"--order {order} is for --engine mpi: drop it")
    if engine == "in-process":
        body(None)
        return
    from functools import partial

    from fedcore.federation.engine import everywhere
    from fedcore.federation.engines.in_process import InProcess

    with everywhere(partial(InProcess, plain=True)):
        body(None)

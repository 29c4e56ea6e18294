"""CPU time of rounds with many local products, by the features and along the client's own axes.

FAPS with 30 inner iterations a round, on clients of the spectrum (23). Beside both forms stands
what the products alone would take at the rate of a large square product. The first round goes by
the features in either form, because it amplifies rounding. The exit status is 1 when the forms find
other objectives after it. See README.md.
"""

from __future__ import annotations

import one_thread  # noqa: F401  # isort: skip
import sys
import time

import click
import numpy as np
from timing import seconds

import fedcore
from fedcore.experiments import build
from fedcore.parts import local_axes
from fedcore.problems.clients import Clients

STEPS = 30


def timed(clients: Clients, p: int, rounds: int, along: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return CPU seconds after each round, and the objective."""
    local_axes.axes_pay_off = lambda n, d, columns: along and columns > p
    moments: list[float] = []

    def watch(row: object) -> bool:
        moments.append(time.process_time())
        return False

    found = fedcore.run(
        "faps", clients, p, rounds=rounds, inner="fixed", inner_steps=STEPS, stop=watch,
        measure=("objective",),
    )  # fmt: skip
    return np.diff(moments), found.history["objective"]


@click.command(help=__doc__.split("\n")[0])
@click.option("--features", default=1000, show_default=True, help="n.")
@click.option("--samples", default=2000, show_default=True, help="Of each client.")
@click.option("--clients", default=4, show_default=True)
@click.option("--columns", default=10, show_default=True, help="p.")
@click.option("--rounds", default=12, show_default=True)
def main(features: int, samples: int, clients: int, columns: int, rounds: int) -> None:
    n, m, p = features, samples, columns
    params = {"n_features": n, "n_samples": m * clients, "n_clients": clients, "xi": 1.01}
    spec = {"generator": "spectrum", "params": params}
    data = list(build.build("bench", spec, raw="", seed=0, surrogate=False).clients)
    square = np.random.default_rng(0).standard_normal((1000, 1000))
    peak = 2e9 / seconds(lambda: square @ square)
    click.echo(f"n = {n}, {clients} clients of {m} samples, p = {p}, {STEPS} products a round")
    limit = STEPS * p * clients * min(2 * n**2, 4 * n * m) / peak
    by_features, one = timed(Clients(data), p, rounds, along=False)
    along, other = timed(Clients(data), p, rounds, along=True)
    plain, turned = np.median(by_features[2:]), np.median(along[2:])
    once = along[1] - turned
    saved = (plain - turned) / plain
    click.echo(f"{'s a round by features':<34}{plain:>9.3f}")
    click.echo(f"{'s of its products at peak rate':<34}{limit:>9.3f}")
    click.echo(f"{'s a round along axes':<34}{turned:>9.3f}")
    click.echo(f"{'features / axes':<34}{plain / turned:>9.2f}")
    click.echo(f"{'s for all axes, once':<34}{once:>9.3f}")
    click.echo(f"{'rounds by features that take as long':<36}{once / plain:>7.1f}")
    click.echo(f"{'share of a round that axes save':<34}{saved:>9.2f}")
    if not np.allclose(one, other, rtol=1e-6):
        click.echo("the two forms find other objectives", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()

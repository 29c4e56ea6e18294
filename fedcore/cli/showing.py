"""The commands `show` and `plot`, which show the contents of a history."""

# ruff: noqa: D301  (click wants a real backspace before lines that it must not wrap)

from __future__ import annotations

from pathlib import Path

import click

from fedcore.cli import options
from fedcore.cli.output import as_json, emit, say


@click.command()
@click.argument("file", type=click.Path())
@click.option("--iterates", is_flag=True,
              help="Recompute the angle of every iterate in FILE to the exact subspace, and show "
              "it beside the recorded angle.")  # fmt: skip
@as_json
def show(file: str, iterates: bool, as_json: bool) -> None:
    """Show the origin and the contents of a history FILE, and how its run ended.

    \b
    Examples:
      fedcore show results/histories/factorization/fig3/power_gd/w8a-alpha0-gd.h5
      fedcore show run.h5 --iterates
    """
    import numpy as np

    from fedcore.history import History
    from fedcore.reports.description import describe
    from fedcore.reports.replay import replay
    from fedcore.reports.terminal import contents, one_run, replayed

    history = History.load(file)
    if iterates:
        found = replay(history)
        listed = {name: np.asarray(value).tolist() for name, value in found._asdict().items()}
        emit(listed, lambda: replayed(history, found), as_json)
        return
    said = describe(history)
    emit(said, lambda: f"{one_run(said)}\n\n{contents(history)}", as_json)


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option("--out", metavar="PATH", callback=options.figure,
              help="Write PATH.png and PATH.pdf.  [default: beside the first FILE]")  # fmt: skip
@options.force
@click.option("--against", multiple=True, metavar="COLUMN",
              help="x axis: round, bytes_up, bytes_down, epsilon or iteration; may be given "
              "several times.  [default: round]")  # fmt: skip
@click.option("--metric", "metrics", multiple=True,
              help="Metric to draw; may be given several times.  [default: all]")  # fmt: skip
def plot(
    files: tuple[str, ...],
    out: str | None,
    force: bool,
    against: tuple[str, ...],
    metrics: tuple[str, ...],
) -> None:
    """Draw the metrics of histories, one curve per FILE.

    \b
    Examples:
      fedcore plot results/run.h5
      fedcore plot ssi.h5 faps.h5 --against bytes_up --metric subspace_distance --out fig
    """
    from fedcore.history import History
    from fedcore.reports import comparison, plotting

    histories = {file: History.load(file) for file in dict.fromkeys(files)}
    target = out or str(Path(files[0]).with_suffix(".png"))
    options.require_output("--out", target, "figure", files, force)
    names = {file: str(history.about.get("algorithm", "?")) for file, history in histories.items()}
    data = {file: h.about.get("problem", {}).get("name", "") for file, h in histories.items()}
    if len(set(data.values())) > 1:
        names = {file: f"{name}, {data[file] or 'own data'}" for file, name in names.items()}
    if len(set(names.values())) < len(names):
        names = {file: f"{name}, {Path(file).stem}" for file, name in names.items()}
    if len(set(names.values())) < len(names):
        names = {file: file for file in names}
    drawn = {names[file]: history for file, history in histories.items()}
    comparison.figure(drawn, against, metrics, path=target, force=force)
    for path in plotting.files(target):
        say(path)

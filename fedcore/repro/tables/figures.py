"""Save a paper's figures, with verdicts below the title and facts about the run in a corner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from matplotlib.figure import Figure

from fedcore.reports import plotting
from fedcore.repro.tables.results import Results, Run


def save(
    results: Results,
    figure: Figure,
    name: str,
    runs: Iterable[Run],
    title: str,
    sentences: Mapping[str, str] = {},
    change: str = "",
    spread: str = "",
) -> None:
    """Write a figure to the paper's folder of figures; see `fedcore.reports.plotting.save`.

    Parameters
    ----------
    results : Results
    figure : Figure
    name : str
        Path of the figure's files inside the paper's folder of figures, without a suffix.
    runs : iterable of Run
        Runs that the figure shows.
    title : str
    sentences : mapping of str to str, optional
        What the paper prints, in a few words, keyed by the id of the item (printed statement or
        number).
    change : str
        Name of a change to the printed claim; the figure shows runs with this change. See
        `Results.outcome`.
    spread : str
        Words that say how the figure shows the spread of the repeats.
    """
    shown = list(runs)
    plotting.save(
        figure,
        results.figures / name,
        shown,
        title=title,
        line=results.outcome(sentences, change),
        corner=results.corner(shown, spread),
    )

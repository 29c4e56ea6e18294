"""Experiments that a figure shows: noted while its panels are drawn, and kept in its PNG file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from weakref import WeakKeyDictionary

from matplotlib.figure import Figure, SubFigure
from PIL import Image

from fedcore.history import History

KEY = "Experiments"  # of the file's text
_NOTED: WeakKeyDictionary[Figure | SubFigure, set[str]] = WeakKeyDictionary()


def note(figure: Figure | SubFigure, histories: Iterable[History]) -> None:
    """Note that a panel of the figure shows these histories."""
    found = {
        str(history.about["experiment"]) for history in histories if "experiment" in history.about
    }
    _NOTED.setdefault(figure, set()).update(found)


def metadata(figure: Figure) -> dict[str, str]:
    """Return what is noted of a figure, as text of a PNG file."""
    found = sorted(_NOTED.get(figure, ()))
    return {KEY: " ".join(found)} if found else {}


def experiments(file: Path) -> frozenset[str]:
    """Return the experiments that a PNG file names; none for one of another program."""
    with Image.open(file) as picture:
        text = getattr(picture, "text", {})
    return frozenset(text.get(KEY, "").split())

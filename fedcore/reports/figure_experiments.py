"""Experiments that a figure shows: noted while its panels are drawn, and kept in its PNG file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from weakref import WeakKeyDictionary

from matplotlib.figure import Figure, SubFigure
from PIL import Image

from fedcore.history import History

KEY = "Experiments"  # of the file's text
NONE = "-"  # in its place, of a figure without panels
_NOTED: WeakKeyDictionary[Figure | SubFigure, set[str]] = WeakKeyDictionary()


def note(figure: Figure | SubFigure, histories: Iterable[History]) -> None:
    """Note that a panel of the figure shows these histories."""
    found = {
        str(history.about["experiment"]) for history in histories if "experiment" in history.about
    }
    _NOTED.setdefault(figure, set()).update(found)


def note_nothing(figure: Figure) -> None:
    """Note that a figure has no panels, as nothing of it was run."""
    _NOTED[figure] = {NONE}


def metadata(figure: Figure) -> dict[str, str]:
    """Return what is noted of a figure, as text of a PNG file."""
    found = sorted(_NOTED.get(figure, ()))
    return {KEY: " ".join(found)} if found else {}


def experiments(file: Path) -> frozenset[str]:
    """Return the experiments that a PNG file names; none for one of another program."""
    return frozenset(_text(file).split()) - {NONE}


def shows_nothing(file: Path) -> bool:
    """Whether a PNG file says that nothing of its figure was run."""
    return _text(file) == NONE


def _text(file: Path) -> str:
    with Image.open(file) as picture:
        text: dict[str, str] = getattr(picture, "text", {})
    return text.get(KEY, "")

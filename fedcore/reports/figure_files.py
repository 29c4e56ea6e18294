"""Figures as files, PNG and PDF, and as pictures in a notebook; nothing of them is cut.

The experiments that a figure shows are noted while its panels are drawn, and kept in its PNG file.
"""

from __future__ import annotations

import io
import os
import re
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from weakref import WeakKeyDictionary

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.figure import Figure, SubFigure
from matplotlib.text import Text
from PIL import Image

from fedcore.files import atomic
from fedcore.history import History
from fedcore.reports.axes import mark_unreleased, style
from fedcore.words import visible

DPI = 150
VARIABLE = "FEDCORE_FIGURES"  # "png" leaves out the PDF, which takes half the time
WIDENINGS = 4  # the layout moves axes of a fixed aspect when there is more room
EXPERIMENTS = "Experiments"  # key of the text in a PNG file
NO_PANEL = "-"  # in the place of experiments, of a figure without panels
_NOTED: WeakKeyDictionary[Figure | SubFigure, set[str]] = WeakKeyDictionary()


def files(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Return the PNG and the PDF of a figure, whose path has no suffix."""
    return Path(f"{os.fspath(path)}.png"), Path(f"{os.fspath(path)}.pdf")


def save(figure: Figure, path: str | os.PathLike[str]) -> list[Path]:
    """Write a figure as PNG (150 dpi) and PDF, each whole or not at all; show it in a notebook.

    If the environment says ``FEDCORE_FIGURES=png``, as in the quick run, there is no PDF.

    Returns
    -------
    list of pathlib.Path
        What was written. The files hold no time: under one version of matplotlib and its
        libraries, the same figure gives the same bytes.
    """
    mark_unreleased(figure)
    for text in figure.findobj(Text):  # fonts lack control characters, and one stops the PDF
        if (shown := visible(text.get_text())) != text.get_text():
            text.set_text(shown)
    _lay_out(figure)
    png, pdf = files(path)
    figure.set_dpi(DPI)
    metadata = {"Software": None, **_noted(figure)}
    # `Figure.savefig` would draw once more for each file, to find a layout.
    with style(), atomic.replace(png, summed=True) as temporary:
        FigureCanvasAgg(figure).print_png(temporary, metadata=metadata)
    _show(png.read_bytes())
    if os.getenv(VARIABLE) == "png":
        return [png]
    with style(), atomic.replace(pdf, summed=True) as temporary:
        FigureCanvasPdf(figure).print_pdf(temporary, metadata={"CreationDate": None})
    return [png, pdf]


def save_or_show(figure: Figure, path: str | os.PathLike[str] | None) -> None:
    """Save a figure, or only show it in a notebook."""
    if path is not None:
        save(figure, path)
        return
    mark_unreleased(figure)
    if _in_notebook():
        drawn = io.BytesIO()
        figure.set_dpi(DPI)
        FigureCanvasAgg(figure).print_png(drawn)
        _show(drawn.getvalue())


def _lay_out(figure: Figure) -> None:
    """Find places for all parts, which is the slowest part: it is done once for both files."""
    with style():
        layout = figure.get_layout_engine()
        if layout is not None and figure.axes:
            layout.execute(figure)
            if _wrap_what_is_cut(figure):
                layout.execute(figure)
            for _ in range(WIDENINGS):
                if not _widened(figure):
                    break
                layout.execute(figure)
        figure.set_layout_engine("none")


def _wrap_what_is_cut(figure: Figure) -> bool:
    """Wrap titles that would pass the figure's right edge or another title; return whether any."""
    boxes = [(ax, ax._left_title.get_window_extent()) for ax in figure.axes]  # type: ignore[attr-defined]
    found = False
    for ax, box in boxes:
        text = ax.get_title(loc="left")
        right = [o.x0 for _, o in boxes if o.x0 > box.x0 and o.y0 < box.y1 and box.y0 < o.y1]
        edge = min([figure.bbox.x1, *right])
        if text and box.x1 > edge:
            longest = max(map(len, text.splitlines()))
            room = max(int(longest * (edge - box.x0) / box.width), 10)
            whole = re.sub(r"\[[^]]*]", lambda mark: mark[0].replace(" ", "\u00a0"), text)
            ax.set_title("\n".join(textwrap.wrap(whole, room)).replace("\u00a0", " "))
            found = True
    return found


def _widened(figure: Figure) -> bool:
    """Widen a figure by what passes its sides; return whether any does.

    The layout finds no room beside axes of a fixed aspect: they do not become smaller with it.
    """
    width, height = figure.get_size_inches()
    box = figure.get_tightbbox()
    cut = max(0.0, -box.x0) + max(0.0, box.x1 - width)
    if cut > 1 / DPI:
        figure.set_size_inches(width + cut, height)
    return cut > 1 / DPI


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")  # loaded if this runs in a notebook
    return ipython is not None and ipython.get_ipython() is not None


def _show(png: bytes) -> None:
    """Show a figure in a notebook, and do nothing elsewhere."""
    if _in_notebook():
        display = sys.modules["IPython"].display
        display.display(display.Image(data=png, retina=True))


def note_experiments(figure: Figure | SubFigure, histories: Iterable[History]) -> None:
    """Note that a panel of the figure shows these histories."""
    found = {
        str(history.about["experiment"]) for history in histories if "experiment" in history.about
    }
    _NOTED.setdefault(figure, set()).update(found)


def note_nothing(figure: Figure) -> None:
    """Note that a figure has no panels, as nothing of it was run."""
    _NOTED[figure] = {NO_PANEL}


def _noted(figure: Figure) -> dict[str, str]:
    """Return what is noted of a figure, as text of a PNG file."""
    found = sorted(_NOTED.get(figure, ()))
    return {EXPERIMENTS: " ".join(found)} if found else {}


def experiments(file: Path) -> frozenset[str]:
    """Return the experiments that a PNG file names; none for one of another program."""
    return frozenset(_text(file).split()) - {NO_PANEL}


def shows_nothing(file: Path) -> bool:
    """Whether a PNG file says that nothing of its figure was run."""
    return _text(file) == NO_PANEL


def _text(file: Path) -> str:
    with Image.open(file) as picture:
        text: dict[str, str] = getattr(picture, "text", {})
    return text.get(EXPERIMENTS, "")

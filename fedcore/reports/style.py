"""Style of all figures: colours, lines, fonts and grid."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import matplotlib
from cycler import cycler

# Okabe and Ito's colours, distinct for colour-blind readers; without yellow, too faint on white.
COLOURS = {
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "black": "#000000",
    "grey": "#767676",
}
CYCLE = list(COLOURS.values())[:6]
LINESTYLES = ("-", "--", "-.", ":")

LONG = (0, (12, 1))  # dashes so long that a smooth curve looks solid

# Look of an algorithm in all figures. An algorithm that is not here gets a look from its name.
LOOKS: dict[str, tuple[str, Any]] = {
    "centralized_svd": ("black", ":"),
    "power_exact": ("vermillion", "-"),
    "power_gd": ("blue", "-"),
    "power_iteration": ("orange", "-"),
    "power_prox": ("purple", "-"),
    "wk2023": ("green", "-"),
    "yd2021": ("sky", "-"),
    "ssi": ("blue", "--"),
    "local_power": ("vermillion", "--"),
    "faps": ("green", "--"),
    "block_krylov": ("purple", "--"),
    "momentum_power": ("orange", "--"),
    "one_shot": ("sky", "--"),
    "fedrep_linear": ("blue", LONG),
    "fedsgd_linear": ("vermillion", LONG),
    "local_linear": ("black", LONG),
    "analyze_gauss": ("black", "-."),
    "adaptive_power": ("blue", "-."),
    "noisy_power": ("green", "-."),
    "dn26": ("purple", "-."),
    "private_oja": ("orange", "-."),
    "dp_pca": ("vermillion", "-."),
    "adaptive_search": ("sky", "-."),
}


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Set fonts, grid, colours and layout of figures made inside; ignore the user's settings."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "axes.axisbelow": True,
                "axes.grid": True,
                "axes.labelsize": 10,
                "axes.prop_cycle": cycler(color=CYCLE),
                "axes.spines.right": False,
                "axes.spines.top": False,
                "axes.titlelocation": "left",
                "axes.titlesize": 11,
                "axes.titleweight": "bold",
                "figure.constrained_layout.use": True,
                "figure.figsize": (5.6, 3.8),
                "font.family": "DejaVu Sans",
                "font.size": 10,
                "grid.alpha": 0.3,
                "grid.linewidth": 0.6,
                "legend.fontsize": 9,
                "legend.frameon": False,
                "lines.linewidth": 1.8,
                "pdf.fonttype": 42,
                "svg.hashsalt": "fedcore",
                "xtick.labelsize": 9,
                "ytick.labelsize": 9,
            }
        )
        yield


def looks(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return ``color`` and ``linestyle`` of the names in a figure, as `Axes.plot` takes them.

    Unlike `look`, names of one algorithm differ.
    """
    count = len(CYCLE)
    return {
        name: {"color": CYCLE[i % count], "linestyle": LINESTYLES[i // count % len(LINESTYLES)]}
        for i, name in enumerate(names)
    }


def look(algorithm: str) -> dict[str, str]:
    """Return ``colour`` and ``linestyle`` of an algorithm, the same in every figure.

    Examples
    --------
    >>> look("power_gd")
    {'colour': '#0072B2', 'linestyle': '-'}
    """
    if algorithm in LOOKS:
        colour, linestyle = LOOKS[algorithm]
        return {"colour": COLOURS[colour], "linestyle": linestyle}
    rest, hue = divmod(zlib.crc32(algorithm.encode()), len(CYCLE))
    return {"colour": CYCLE[hue], "linestyle": LINESTYLES[rest % len(LINESTYLES)]}

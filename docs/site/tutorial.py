"""The tutorial's pictures, drawn by its own scripts when the site is built."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "docs" / "three_hospitals"
DRAWN = ROOT / "build" / "three_hospitals"
FILES = ("north.csv", "south.csv", "west.csv")
PICTURES = {"scores.png": (), "scores-private.png": ("--epsilon", "1")}


def plots() -> str:
    """Return the two pictures side by side, as Markdown."""
    DRAWN.mkdir(parents=True, exist_ok=True)
    _script("synthetic_hospitals.py")
    for options in PICTURES.values():
        _script("hospital_pca.py", *FILES, *options)
    return "\n".join(
        f"![Scores of all synthetic patients, {what}](../build/three_hospitals/{name})"
        for name, what in zip(PICTURES, ("exact", "with ε = 1"), strict=True)
    )


def _script(name: str, *arguments: str) -> None:
    command = [sys.executable, str(SCRIPTS / name), *arguments]
    subprocess.run(command, cwd=DRAWN, check=True, stdout=subprocess.DEVNULL)

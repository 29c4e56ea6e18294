"""Keeps small pictures of the last full run's figures in docs/gallery/, and removes unknown ones.

A clone has no results, and its gallery and README show these pictures. Each names its run, commit
and sizes. If a run left out all that a figure needs, its earlier picture stays. A quick run draws
none of them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from PIL import Image

from fedcore.files.strict_yaml import read_yaml
from fedcore.reports import plotting

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "docs" / "gallery"
WIDTH, COLOURS = 1440, 256  # pixels; thin lines stay legible, and a picture has some 60 kB


def figures(root: Path = ROOT) -> dict[str, dict[str, str]]:
    """Return the captions of the figures of every paper, from the configuration."""
    files = sorted(root.glob("papers/*/experiments.yaml"))
    return {file.parent.name: read_yaml(file).get("figures", {}) for file in files}


def keep(results: Path, kept: Path = KEPT, root: Path = ROOT) -> list[Path]:
    """Keep the figures of a full run; return the pictures that are new."""
    named = figures(root)
    for old in kept.glob("*/*.png"):
        if old.stem not in named.get(old.parent.name, {}):
            old.unlink()
    made = []
    for paper, captions in named.items():
        for name in captions:
            source, target = (
                results / "figures" / paper / f"{name}.png",
                kept / paper / f"{name}.png",
            )
            if source.is_file() and not plotting.shows_nothing(source):
                shrink(source, target)
                made.append(target)
    return made


def shrink(source: Path, target: Path) -> None:
    """Write a picture anew, at most `WIDTH` pixels wide and in few colours."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(source) as picture:
        small = picture.convert("RGB")
    if small.width > WIDTH:
        height = round(small.height * WIDTH / small.width)
        small = small.resize((WIDTH, height), Image.Resampling.LANCZOS)
    # The method that keeps hues apart: median cut gives two thin lines one colour between theirs.
    few = small.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(target, optimize=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, nargs="?", default=ROOT / "results")
    found = keep(parser.parse_args().results)
    if not found:
        sys.exit("Error: there are no figures of a full run: run `make reproduce` first")
    print(*(file.relative_to(ROOT) for file in found), sep="\n")

"""Keeps small pictures of the last full run's figures in docs/gallery/, and writes docs/gallery.md.

A clone of the repository has no results, so its gallery and README show these pictures. Each
picture names its run, commit and sizes. If a run left out all that a figure needs, the figure's
earlier picture stays. Pictures that no paper's experiments.yaml names are removed. A quick run
writes its figures to another folder, results/quick/. A test fails if the page is stale.
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
INTRODUCTION = """# Gallery

The notebooks of the papers, and of the arena (a comparison of all methods), draw figures. This page
shows each figure at the papers' sizes, with the command that makes it. Each figure names its run,
commit and sizes. `python tools/kept_figures.py` stores the figures and writes this page."""
NOT_DRAWN = "No run at the papers' sizes has drawn this figure yet, so it is not here."
OTHERS = {  # pictures of docs/ that no paper's notebook draws: what they show, and what makes them
    "mpi_scaling.png": (
        "Time of a round that mostly computes, and of a round that only sends small messages, "
        "against the number of MPI ranks.",
        "python benchmarks/bench_mpi.py --kept benchmarks/kept/bench_mpi.txt "
        "--plot docs/mpi_scaling.png",
    ),
}


def figures(root: Path = ROOT) -> dict[str, dict[str, str]]:
    """Return the captions of each paper's figures, from papers/*/experiments.yaml."""
    files = sorted(root.glob("papers/*/experiments.yaml"))
    return {file.parent.name: read_yaml(file).get("figures", {}) for file in files}


def keep(results: Path, kept: Path = KEPT, root: Path = ROOT) -> list[Path]:
    """Store the figures of a full run as small pictures, and return the paths of these pictures."""
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
    """Write a copy of a picture, at most `WIDTH` pixels wide and in at most `COLOURS` colours."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(source) as picture:
        small = picture.convert("RGB")
    if small.width > WIDTH:
        height = round(small.height * WIDTH / small.width)
        small = small.resize((WIDTH, height), Image.Resampling.LANCZOS)
    # The method that keeps hues apart: median cut gives two thin lines one colour between theirs.
    few = small.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(target, optimize=True)


def page(root: Path = ROOT) -> str:
    """Return the text of docs/gallery.md."""
    parts = [INTRODUCTION]
    for paper, captions in figures(root).items():
        parts.append(f"## `{paper}`")
        for name, caption in captions.items():
            target = f"snakemake --cores 2 -- results/figures/{paper}/{name}.png"
            parts.append(_figure(root, f"gallery/{paper}/{name}.png", caption, target))
    parts.append("## Other pictures of these pages")
    parts += [_figure(root, name, *said) for name, said in OTHERS.items()]
    return "\n\n".join(parts) + "\n"


def _figure(root: Path, place: str, caption: str, command: str) -> str:
    said = caption.rstrip(".")
    if not (root / "docs" / place).is_file():
        return f"{said}. {NOT_DRAWN}\n`{command}` makes it."
    alternative = caption.replace("`", "").replace("[", "(").replace("]", ")")
    return f"![{alternative}]({place})\n\n{said}. Made by\n`{command}`"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, nargs="?", default=ROOT / "results")
    found = keep(parser.parse_args().results)
    if not found:
        sys.exit("Error: there are no figures of a full run: run `make reproduce` first")
    (ROOT / "docs/gallery.md").write_text(page(), encoding="utf-8")
    print(*(file.relative_to(ROOT) for file in found), sep="\n")

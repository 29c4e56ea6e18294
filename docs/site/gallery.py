"""The gallery: the kept picture of every figure, each with the command that makes it."""

from __future__ import annotations

import os
from pathlib import Path

import kept_figures

ROOT = Path(__file__).parents[2]
NOT_DRAWN = "No run at the papers' size has drawn it since it was written, so that it is not here."
OTHERS = {  # pictures of docs/ that no paper's notebook draws: what they show, and what makes them
    "mpi_scaling.png": (
        "Milliseconds of a round against ranks of MPI, of work and of messages.",
        "python benchmarks/bench_mpi.py --kept benchmarks/kept/bench_mpi.txt "
        "--plot docs/mpi_scaling.png",
    ),
}


def page(root: Path = ROOT) -> str:
    """Return the sections of the gallery, as Markdown."""
    parts = []
    for paper, captions in kept_figures.figures(root).items():
        parts.append(f"## `{paper}`")
        for name, caption in captions.items():
            target = f"snakemake --cores 2 -- results/figures/{paper}/{name}.png"
            parts.append(
                _figure(root, root / "docs/gallery" / paper / f"{name}.png", caption, target)
            )
    parts.append("## Other pictures of these pages")
    parts += [_figure(root, root / "docs" / name, *said) for name, said in OTHERS.items()]
    return "\n\n".join(parts)


def _figure(root: Path, file: Path, caption: str, command: str) -> str:
    if not file.is_file():
        return f"{caption.rstrip('.')}. {NOT_DRAWN}\n`{command}` makes it."
    place = Path(os.path.relpath(file, root / "docs")).as_posix()
    alternative = caption.replace("`", "").replace("[", "(").replace("]", ")")
    return f"![{alternative}]({place})\n\n{caption.rstrip('.')}. Made by\n`{command}`"

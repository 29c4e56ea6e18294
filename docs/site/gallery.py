"""The gallery: every figure of the last run, each with the command that makes it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from fedcore.reports.site import model

ROOT = Path(__file__).parents[2]
RUNS = {  # folder of results: the command that makes them
    "results": ("at the papers' size", "snakemake --cores 2"),
    "results/quick": (
        "at small size, on stand-ins for data",
        "snakemake --cores 2 --configfile config/quick.yaml",
    ),
}
NONE = (
    "This site was built beside no results: `make reproduce` or `make quickstart` makes them, and "
    "`make docs` then shows every figure here. Until then, this is what the repository keeps."
)


def page(root: Path = ROOT) -> str:
    """Return the sections of the gallery, as Markdown; the full run stands before the quick one."""
    parts = []
    for folder, (what, command) in RUNS.items():
        papers = [paper for paper in _papers(root / folder, root) if paper.figures]
        if papers:
            parts.append(f"## The last run {what}\n\nFigures of `{folder}/`.")
        for paper in papers:
            parts.append(f"### `{paper.name}`: {paper.plan['title']}")
            for shown in paper.figures:
                file = shown.file.relative_to(root)
                parts.append(_figure(file, f"{shown.caption}.", f"{command} -- {file.as_posix()}"))
        if papers:
            return "\n\n".join(parts)
    return "\n\n".join([NONE, *_kept(root)])


def _papers(results: Path, root: Path) -> list[model.Paper]:
    return model.papers(results, root) if results.is_dir() else []


def _kept(root: Path) -> Iterator[str]:
    """Yield the pictures in docs/: named paper-figure."""
    from fedcore.config.strict_yaml import read_yaml

    for file in sorted((root / "docs").glob("*-*.png")):
        paper, _, name = file.stem.partition("-")
        settings = read_yaml(root / "config" / "papers" / f"{paper}.yaml")
        target = f"results/figures/{paper}/{name}.png"
        text = f"{settings['figures'][name]}, paper `{paper}`."
        yield _figure(file.relative_to(root), text, f"{RUNS['results'][1]} -- {target}")


def _figure(file: Path, caption: str, command: str) -> str:
    place = Path(os.path.relpath(file, "docs")).as_posix()
    alternative = caption.replace("`", "").replace("[", "(").replace("]", ")")
    return f"![{alternative}]({place})\n\n{caption} Made by\n`{command}`"

"""The gallery: every figure of the last run, each with the command that makes it."""

from __future__ import annotations

import os
from pathlib import Path

import kept_figures

from fedcore.repro.site import model

ROOT = Path(__file__).parents[2]
RUNS = {  # folder of results: the command that makes them
    "results": ("at the papers' size", "snakemake --cores 2"),
    "results/quick": (
        "at small size, on stand-ins for data",
        "snakemake --cores 2 --configfile config/quick.yaml",
    ),
}
KEPT = "docs/gallery"
NONE = (
    "This site was built beside no results: `make reproduce` or `make quickstart` makes them, and "
    "`make docs` then shows their figures here. Until then, these are the small pictures that "
    "`python tools/kept_figures.py` last kept of such runs."
)
OTHERS = {  # pictures of docs/ that no paper's notebook draws: what they show, and what makes them
    "factorization-fig3.png": (
        "README's figure: loss against local iterations, paper `factorization`, at its size.",
        "snakemake --cores 2 -- results/figures/factorization/fig3.png",
    ),
    "mpi_scaling.png": (
        "Milliseconds of a round against ranks of MPI, of work and of messages.",
        "python benchmarks/bench_mpi.py --kept benchmarks/kept/bench_mpi.txt "
        "--plot docs/mpi_scaling.png",
    ),
}


def page(root: Path = ROOT) -> str:
    """Return the sections of the gallery, as Markdown; the full run stands before the quick one."""
    return "\n\n".join([*(_last_run(root) or _kept(root)), *_others(root)])


def _last_run(root: Path) -> list[str]:
    """Return the figures of the run that lies in the checkout, if there is one."""
    for folder, (what, command) in RUNS.items():
        papers = [paper for paper in _papers(root / folder, root) if paper.figures]
        parts = [f"## The last run {what}\n\nFigures of `{folder}/`."] if papers else []
        for paper in papers:
            assert paper.plan is not None
            parts.append(f"### `{paper.name}`: {paper.plan['title']}")
            for shown in paper.figures:
                file = shown.file.relative_to(root)
                parts.append(_figure(file, f"{shown.caption}.", f"{command} -- {file.as_posix()}"))
        if parts:
            return parts
    return []


def _papers(results: Path, root: Path) -> list[model.Paper]:
    return model.papers(results, root) if results.is_dir() else []


def _kept(root: Path) -> list[str]:
    """Return the pictures that a clone has, each with the run that it is from."""
    notes = kept_figures.read_notes(root / KEPT)
    parts = [f"## The figures of a run\n\n{NONE}"]
    for paper, settings in kept_figures.figures(root).items():
        if paper not in notes:
            continue
        whole, earlier = notes[paper], notes[paper].get("earlier", {})
        parts.append(f"### `{paper}`: {settings['title']}\n\n{_drawn(whole)}")
        for name, caption in settings["figures"].items():
            file = Path(KEPT, paper, f"{name}.png")
            if (root / file).is_file():
                said = earlier.get(name, whole)
                target = f"{RUNS[said['run']][1]} -- {said['run']}/figures/{paper}/{name}.png"
                parts.append(_figure(file, f"{caption}.", target))
                parts += [_drawn(said)] if name in earlier else []
    return parts


def _drawn(said: dict[str, str]) -> str:
    what = RUNS[said["run"]][0]
    return f"Drawn {what}; kept on {said['date']} at commit {said['commit']}."


def _others(root: Path) -> list[str]:
    shown = [
        _figure(Path("docs", name), caption, command)
        for name, (caption, command) in OTHERS.items()
        if (root / "docs" / name).is_file()
    ]
    return ["## Other pictures of these pages", *shown] if shown else []


def _figure(file: Path, caption: str, command: str) -> str:
    place = Path(os.path.relpath(file, "docs")).as_posix()
    alternative = caption.replace("`", "").replace("[", "(").replace("]", ")")
    return f"![{alternative}]({place})\n\n{caption} Made by\n`{command}`"

"""Keeps small pictures of the last run's figures in docs/gallery/.

A clone has no results, and its gallery shows these pictures. Of each paper they are those of the
run at the papers' size if it drew any, and else of the quick run; ``run.json`` says which, and the
commit at which they were kept. Of a paper that neither run drew, the earlier pictures stay, and
those of the papers' size stay where there is a quick run alone. So does the earlier picture of a
figure of which the run left everything out; its own note is under ``earlier``.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedcore.experiments.provenance import commit
from fedcore.files.strict_yaml import read_yaml
from fedcore.reports import plotting
from fedcore.repro.site import model

Notes = dict[str, Any]
ROOT = Path(__file__).parents[1]
KEPT = ROOT / "docs" / "gallery"
RUNS = ("results", "results/quick")  # the first that drew a paper's figures is kept
WIDTH, COLOURS = 900, 256  # pixels; text stays legible, and a picture has some 20 kB


def figures(root: Path = ROOT) -> dict[str, dict[str, Any]]:
    """Return title and captions of the figures of every paper, from the configuration."""
    files = sorted(root.glob("papers/*/experiments.yaml"))
    found = {file.parent.name: read_yaml(file) for file in files}
    return {
        paper: {"title": settings["title"], "figures": settings["figures"]}
        for paper, settings in found.items()
        if settings.get("figures")
    }


def collect(root: Path = ROOT, kept: Path = KEPT) -> dict[str, Notes]:
    """Keep the figures of the last runs; return what is noted of each paper."""
    notes, named = read_notes(kept), figures(root)
    now = {"commit": commit(ROOT), "date": datetime.now(UTC).date().isoformat()}
    for paper, settings in named.items():
        whole = notes.get(paper, {}).get("run") == RUNS[0]
        for run in RUNS[:1] if whole else RUNS:
            plan = root / run / "plans" / f"{paper}.json"
            shown = model.Paper(root / run, paper, root).figures if plan.is_file() else []
            if shown:
                known = [figure for figure in shown if figure.name in settings["figures"]]
                notes[paper] = {"run": run, **now} | _kept(known, kept / paper, notes.get(paper))
                break
    for old in kept.glob("*/*.png"):
        if old.stem not in named.get(old.parent.name, {}).get("figures", {}):
            old.unlink()
    kept.mkdir(exist_ok=True)
    text = json.dumps(dict(sorted(notes.items())), indent=1)
    (kept / "run.json").write_text(text + "\n", encoding="utf-8")
    return notes


def _kept(shown: list[model.Exhibit], folder: Path, before: Notes | None) -> Notes:
    """Keep figures; return what is noted of those whose earlier picture stays, if any."""
    earlier: Notes = {}
    for figure in shown:
        picture = folder / f"{figure.name}.png"
        if before and picture.is_file() and plotting.shows_nothing(figure.file):
            said = before.get("earlier", {}).get(figure.name, before)
            earlier[figure.name] = {key: said[key] for key in ("run", "commit", "date")}
        else:
            shrink(figure.file, picture)
    return {"earlier": earlier} if earlier else {}


def read_notes(kept: Path = KEPT) -> dict[str, Notes]:
    """Return run, commit and date of every paper's pictures, and of its earlier ones by name."""
    notes = kept / "run.json"
    return json.loads(notes.read_text(encoding="utf-8")) if notes.is_file() else {}


def shrink(source: Path, target: Path) -> None:
    """Write a picture anew, at most `WIDTH` pixels wide and in few colours."""
    from PIL import Image

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
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    if not collect():
        sys.exit("Error: there are no figures: run `make quickstart` or `make reproduce` first")
    for paper, said in read_notes().items():
        print(f"{paper}: figures of {said['run']}/, kept at {said['commit']}")

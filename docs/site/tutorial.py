"""The tutorial's pictures and its table, by its own commands when the site is built."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np

import fedcore
from fedcore.user_tables import own_files

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "three_hospitals" / "synthetic_hospitals.py"
DRAWN = ROOT / "build" / "three_hospitals"
FILES = ("north.csv", "south.csv", "west.csv")
PICTURES = {"scores": (), "scores-private": ("--epsilon", "1")}
PATIENTS, EPSILONS, FITS = (500, 2000, 8000, 32_000), (0.3, 1.0, 3.0), 20


def plots() -> str:
    """Return the two pictures side by side, as Markdown."""
    _write_files()
    for name, options in PICTURES.items():
        words = [*FILES, "--bounds", "ranges.csv", *options, "--plot", name, "--force"]
        _run("-m", "fedcore", "pca", *words)
    return "\n".join(
        f"![Scores of all synthetic patients, {what}](../build/three_hospitals/{name}.png)"
        for name, what in zip(PICTURES, ("exact", "with ε = 1"), strict=True)
    )


def patients() -> str:
    """Return a table of how far two components are off, for each number of patients and ε."""
    _write_files()
    tables = own_files.together([DRAWN / name for name in FILES])
    ranges = own_files.read(DRAWN / "ranges.csv", apart=["column"])
    low, high = ranges.x.T
    x = np.clip((2 * np.vstack([table.x for table in tables]) - low - high) / (high - low), -1, 1)
    lines = [
        "| patients | " + " | ".join(f"ε = {epsilon:g}" for epsilon in EPSILONS) + " |",
        "| --: |" + " :-- |" * len(EPSILONS),
    ]
    for n in PATIENTS:
        cells = ["{:.2g}, said {:.2g}".format(*measured(x, n, epsilon)) for epsilon in EPSILONS]
        lines.append(f"| {n:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def measured(x: np.ndarray, n: int, epsilon: float) -> tuple[float, float]:
    """Return medians over fits of n patients drawn from x: the true sine, and what a fit says."""
    found = []
    for seed in range(FITS):
        rows = x[np.random.default_rng(seed).integers(len(x), size=n)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fedcore.ConvergenceWarning)
            model = fedcore.FederatedPCA(
                2, epsilon=epsilon, delta=1e-6, bounds=(-1.0, 1.0), random_state=seed,
                params={"simulate": True},  # so that the page is the same each time
            ).fit(np.array_split(rows, len(FILES)))  # fmt: skip
        right_t = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2][:2]
        outside = model.components_ - model.components_ @ right_t.T @ right_t
        found.append((np.linalg.norm(outside, 2), model.error_estimate_))
    true, said = np.median(found, axis=0)
    return float(true), float(said)


def _write_files() -> None:
    DRAWN.mkdir(parents=True, exist_ok=True)
    _run(str(SCRIPT))


def _run(*words: str) -> None:
    subprocess.run([sys.executable, *words], cwd=DRAWN, check=True, stdout=subprocess.DEVNULL)

"""A copy of the checkout with a made-up paper in it, and a way to run Snakemake there.

The copy has the files of a fresh clone: those that git tracks or would track. The paper (`tiny/`)
is added as a user would add one: a paper file, a report, a notebook, a registry entry.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clone import tracked

ROOT = Path(__file__).parents[2]
TINY = Path(__file__).parent / "tiny"
CONFIG = "tiny.yaml"
THREADS = ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM", "NUMEXPR")

# A block of `snakemake -n`: rule, first output, reason.
JOB = re.compile(
    r"^(?:local)?rule (?P<rule>\w+):\n"
    r"(?:    .*\n)*?    output: (?P<output>[^\n,]+)[^\n]*\n"
    r"(?:    .*\n)*?    reason: (?P<reason>.*)$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Checkout:
    """A copy of the checkout, and folders from which Python also imports."""

    root: Path
    beside: tuple[Path, ...] = ()

    @property
    def environment(self) -> dict[str, str]:
        """The copied package before the installed one; no data mirror, no profile of the user's.

        What Python has compiled stays: a run starts Python fourteen times.
        """
        dropped = ("FEDCORE_", "SNAKEMAKE_", "PYTHONDONTWRITEBYTECODE")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
        path = os.pathsep.join(map(str, [self.root, *self.beside]))
        return kept | {"PYTHONPATH": path} | {f"{k}_NUM_THREADS": "1" for k in THREADS}

    def python(self, *args: str, stderr: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *args],
            cwd=self.root, env=self.environment, text=True, timeout=1200,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr,
        )  # fmt: skip

    def snakemake(self, *args: str, config: str = CONFIG, cores: int = 1) -> Finished:
        call = ["-m", "snakemake", *args, "--cores", str(cores), "--configfile", config]
        done = self.python(*call, stderr=subprocess.STDOUT)  # in the order of a terminal
        return Finished(done.returncode, done.stdout)

    def run(self, *args: str, **options: Any) -> Finished:
        """Run Snakemake, which must end without an error."""
        done = self.snakemake(*args, **options)
        assert done.status == 0, done.text
        return done

    def planned(self, *args: str) -> dict[str, str]:
        """The jobs of a dry run: rule by first output, as a path below the folder of results."""
        text = self.run("-n", *args).text
        jobs = {m["output"].removeprefix("results/tiny/"): m["rule"] for m in JOB.finditer(text)}
        listed = re.findall(r"^(?:local)?rule (?!all:)\w+:$", text, re.MULTILINE)
        assert len(jobs) == len(listed), text  # every job has been understood
        return jobs

    def cells(self, *args: str) -> set[str]:
        """Cells that a run would run, as <experiment>/<algorithm>/<cell>."""
        start = "histories/tiny/"
        names = [name for name in self.planned(*args) if name.startswith(start)]
        return {name.removeprefix(start).removesuffix(".h5") for name in names}

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace the one occurrence of `old` in a file of the copy."""
        file = self.root / path
        text = file.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{path} has {text.count(old)} times {old!r}"
        file.write_text(text.replace(old, new), encoding="utf-8")

    def append(self, path: str, text: str) -> None:
        with open(self.root / path, "a", encoding="utf-8") as file:
            file.write(text)

    def files(self, *patterns: str) -> dict[str, bytes]:
        """Content of the files under a final name (temporary ones begin with a dot)."""
        found = {f for pattern in patterns for f in self.root.glob(pattern) if f.is_file()}
        whole = [file for file in sorted(found) if not file.name.startswith(".")]
        return {file.relative_to(self.root).as_posix(): file.read_bytes() for file in whole}

    def payload(self) -> dict[str, bytes]:
        """Files that must not differ between runs: no logs, benchmarks or executed notebooks."""
        folders = ("histories", "tables", "figures", "plans", "verdicts")
        kept = [f"results/tiny/{folder}/**/*" for folder in folders]
        return self.files("data/clients/**/*", *kept, "results/tiny/verdicts.*")

    def copy(self, to: Path) -> Checkout:
        """Copy with modification times and Snakemake's own records."""
        return Checkout(Path(shutil.copytree(self.root, to, symlinks=True)), self.beside)


@dataclass(frozen=True)
class Finished:
    """Exit status and all output of a Snakemake run."""

    status: int
    text: str


def idx_gz(array: np.ndarray) -> bytes:
    """Bytes of a gzip-compressed IDX file."""
    head = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    return gzip.compress(head + array.astype(np.uint8).tobytes(), mtime=0)


def register(checkout: Checkout, name: str, files: dict[str, bytes]) -> None:
    """Add an image data set without addresses to the registry, and drop its files into data/raw."""
    images, labels = files
    sums = {file: hashlib.sha256(content).hexdigest() for file, content in files.items()}
    checkout.append(
        "config/datasets.yaml",
        f"""
  {name}:
    title: {name}
    description: Made by a test.
    terms: none
    citation: none
    homepage: https://example.org
    n_features: 6
    status: official
    note: Made by a test.
    loader: idx
    splits:
      train: {{images: {images}, labels: {labels}}}
    files:
      - {{name: {images}, sha256: {sums[images]}}}
      - {{name: {labels}, sha256: {sums[labels]}}}
""",
    )
    folder = checkout.root / "data" / "raw" / name
    folder.mkdir(parents=True)
    for file, content in files.items():
        (folder / file).write_bytes(content)


# At the end of a method's file: it runs `broken` in place of its own function.
BREAKS = "\n\nimport dataclasses\nALGORITHM = dataclasses.replace(ALGORITHM, run=broken)\n"
# What the workflow does not read for the small paper.
UNREAD = ("tests/", "benchmarks/", "docs/gallery/", "kept/histories/", "config/repeats.yaml")


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """Copy in which nothing has run; not to be changed."""
    checkout = Checkout(tmp_path_factory.mktemp("workflow") / "pristine")
    for name in tracked():
        if name.startswith(UNREAD):
            continue
        target = checkout.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)
    shutil.copy2(TINY / "config.yaml", checkout.root / CONFIG)
    for name in ("experiments.yaml", "claims.yaml", "tables.py"):
        (checkout.root / "papers/tiny").mkdir(exist_ok=True)
        shutil.copy2(TINY / name, checkout.root / "papers/tiny" / name)
    shutil.copy2(TINY / "figures.ipynb", checkout.root / "notebooks/tiny.ipynb")
    pixels = np.random.default_rng(0).integers(0, 256, (12, 2, 3))
    files = {"images.gz": idx_gz(pixels), "labels.gz": idx_gz(np.arange(12) % 2)}
    register(checkout, "little", files)
    # Snakemake waits for the end of a time span before it exits.
    checkout.edit("profiles/default/profile.yaml", "1000/10s", "1000/1s")
    checkout.python("-m", "compileall", "-q", "fedcore", "papers")
    return checkout


@pytest.fixture(scope="session")
def first_run(
    pristine: Checkout, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Checkout, Finished]:
    """Copy in which all has run once, and what that run printed; not to be changed.

    The first process of pytest-xdist that comes here runs it for all.
    """
    shared = tmp_path_factory.getbasetemp()
    shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared
    said = shared / "first_run.json"
    with open(shared / "first_run.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not said.exists():
            run = pristine.copy(shared / "first_run").snakemake()
            said.write_text(json.dumps([run.status, run.text]))
    checkout = Checkout(shared / "first_run").copy(pristine.root.with_name("finished"))
    return checkout, Finished(*json.loads(said.read_text()))


@pytest.fixture
def add_data_set() -> Callable[[Checkout, str, dict[str, bytes]], None]:
    """Return the function that registers a data set."""
    return register


@pytest.fixture
def fresh(pristine: Checkout, tmp_path: Path) -> Checkout:
    """A test's own copy, in which nothing has run."""
    return pristine.copy(tmp_path / "fresh")


@pytest.fixture
def done(first_run: tuple[Checkout, Finished], tmp_path: Path) -> Checkout:
    """A test's own copy, in which everything is up to date."""
    finished, run = first_run
    assert run.status == 0, run.text
    return finished.copy(tmp_path / "done")

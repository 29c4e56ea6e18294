"""Find the files of a paper, which lie in one folder with the paper's name.

In a paper's folder, ``experiments.yaml`` has the problems and experiments, and ``claims.yaml`` has
what the paper prints. The module ``tables.py`` makes the paper's tables. The configuration lists a
paper in the checkout's folder ``papers`` by its name, and any other paper by the path of its
folder. The notebook with the figures is ``notebooks/<paper>.ipynb`` for a paper of the checkout.
For any other paper, the notebook is ``figures.ipynb`` in the paper's folder.
"""

from __future__ import annotations

import importlib.util
import keyword
import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedcore.errors import ConfigError, require_known

CHECKOUT = Path(__file__).parents[3]
FOLDER = "papers"  # of a checkout
DEFAULT_TABLES = "fedcore.repro.tables.report"  # of a paper without a module of its own
ENDS = {"ends": "What every run ended with, a row per repeat"}
# Folders that a checkout comes with.
SOURCES = ("benchmarks", "config", "docs", "examples", "fedcore", "kept", "notebooks", "papers",
           "profiles", "tests", "tools", "workflow")  # fmt: skip
# Names of rules: a paper of this name could not be a target of Snakemake.
TARGETS = ("all", "everything", "fetch", "problem", "plan", "verdicts", "summary", "report")


@dataclass(frozen=True)
class PaperFiles:
    """Paths of the files of one paper; only the file ``experiments.yaml`` must exist.

    Attributes
    ----------
    folder : path
        The paper's folder, whose name is the paper's name. Results and workflow rules are
        named after the paper, and the random seeds depend on the name.
    entry : str
        The paper's name or the path of its folder, as written in the configuration.
    notebook : path
        Notebook that draws the figures, if the paper has figures.
    """

    folder: Path
    entry: str
    notebook: Path

    @property
    def name(self) -> str:
        """Name of the paper."""
        return self.folder.name

    @property
    def paper(self) -> Path:
        """File of the paper's problems and experiments."""
        return self.folder / "experiments.yaml"

    @property
    def claims(self) -> Path:
        """File that says what the paper prints; without this file there are no verdicts."""
        return self.folder / "claims.yaml"

    @property
    def beside_claims(self) -> list[Path]:
        """CSV files with the points of printed panels, and ``test_dates.tsv``, the tests' dates."""
        return sorted([*self.folder.glob("printed/*.csv"), *self.folder.glob("test_dates.tsv")])

    @property
    def report(self) -> Path:
        """File of the module that makes the tables; this file may be missing."""
        return self.folder / "tables.py"

    @property
    def tables(self) -> str:
        """Import path of the module that makes the tables, by default `DEFAULT_TABLES`."""
        return f"{self.name}.tables" if self.report.is_file() else DEFAULT_TABLES

    @property
    def beside(self) -> str:
        """Prefix of a shell command that lets Python import the modules of the paper's folder."""
        folder = shlex.quote(str(self.folder.parent))
        return f'PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}"{folder} '

    def make_importable(self) -> None:
        """Let this process import the modules of the paper's folder."""
        if not self.report.is_file():
            return
        folder = str(self.folder.parent.absolute())
        if folder not in sys.path:
            sys.path.append(folder)  # last, so that it hides nothing
            importlib.invalidate_caches()
        try:
            found = importlib.util.find_spec(self.tables)
        except ModuleNotFoundError:  # another module has its name, and is no package
            found = None
        origin = found.origin if found else None
        if origin is None or Path(origin).resolve() != self.report.resolve():
            raise ConfigError(
                f"papers: {self.report} cannot be imported, because another module is "
                f"called '{self.name}': rename the paper"
            )


def at(entry: str, checkout: Path = CHECKOUT) -> PaperFiles:
    """Return the paths of the files of the paper that the configuration calls `entry`."""
    if "/" not in entry:
        return PaperFiles(
            checkout / FOLDER / entry, entry, checkout / "notebooks" / f"{entry}.ipynb"
        )
    folder = Path(os.path.expanduser(entry))
    return PaperFiles(folder, folder.as_posix(), folder / "figures.ipynb")


def require_checkout(what: str) -> None:
    """Raise `ConfigError` unless fedcore runs from a checkout; the error names the task `what`."""
    if not (CHECKOUT / "workflow/rules").is_dir():
        raise ConfigError(
            f"{what} needs a checkout, and this fedcore is an installed package: clone the "
            "repository, and run it there"
        )


def list_papers(checkout: Path = CHECKOUT) -> dict[str, PaperFiles]:
    """Return the files of the checkout's papers, keyed by the papers' names.

    Papers without a claims file come last.
    """
    names = sorted(file.parent.name for file in (checkout / FOLDER).glob("*/experiments.yaml"))
    found = {name: at(name, checkout) for name in names}
    return dict(sorted(found.items(), key=lambda item: not item[1].claims.is_file()))


def find(entry: str, known: Mapping[str, PaperFiles]) -> PaperFiles:
    """Check a paper's entry in the configuration, and return the paper's files.

    Parameters
    ----------
    entry : str
        Name of a paper of the checkout, or path of any other paper's folder. A path must contain a
        slash.
    known : mapping
        The checkout's papers, as `list_papers` returns them.
    """
    if "/" not in entry:
        _require_name(entry, f"papers: '{entry}'")
        require_known(entry, known, "papers: unknown paper")
        return known[entry]
    if set(entry) & set("{}"):
        raise ConfigError(f"papers: {entry}: Snakemake allows no braces: rename the folder")
    found = at(entry)
    if not found.paper.is_file():
        raise ConfigError(
            f"papers: there is no file {found.paper}: name the paper's folder (a relative "
            f"path starts at {Path.cwd()})"
        )
    _require_name(found.name, f"papers: {entry}: '{found.name}'")
    return found


def chosen(entries: Iterable[str], known: Mapping[str, PaperFiles]) -> dict[str, PaperFiles]:
    """Return the files of papers, keyed by name; raise `ConfigError` if two papers share a name."""
    found: dict[str, PaperFiles] = {}
    for entry in entries:
        files = find(entry, known)
        same = known.get(files.name, files)
        if files.name in found or same.folder.resolve() != files.folder.resolve():
            raise ConfigError(
                f"papers: {found.get(files.name, same).folder} and {entry} have the same "
                "name, and their results would overwrite each other: rename one"
            )
        found[files.name] = same
    return found


def folders(paths: Mapping[str, str], checkout: Path = CHECKOUT) -> dict[str, str]:
    """Return the folders that a run writes, with the home directory in place of ``~``.

    Parameters
    ----------
    paths : mapping of str to str
        Value of ``paths`` in the configuration.
    checkout : path

    Raises
    ------
    ConfigError
        If the folder of the results or of the clients' data is the checkout itself or lies in one
        of its folders `SOURCES`, where a run could overwrite the checkout's own files.
    """
    found, own = {key: os.path.expanduser(path) for key, path in paths.items()}, checkout.resolve()
    for key in ("clients", "results"):
        folder = Path(found[key]).resolve()
        if folder == own or any(folder.is_relative_to(own / name) for name in SOURCES):
            raise ConfigError(
                f"the configuration, paths.{key}: '{found[key]}' is for files of the checkout, "
                "which a run could overwrite: name a separate folder"
            )
    return found


def require_drawable(files: PaperFiles, settings: Mapping[str, Any]) -> None:
    """Raise `ConfigError` if a paper lists a table or figure that no code can make."""
    if settings["figures"] and not files.notebook.is_file():
        raise ConfigError(
            f"{files.paper}, figures: '{next(iter(settings['figures']))}' needs a notebook that "
            f"draws it: write {files.notebook}, or remove the name"
        )
    others = [name for name in settings["tables"] if name not in ENDS]
    if others and files.tables == DEFAULT_TABLES:
        raise ConfigError(
            f"{files.paper}, tables: '{others[0]}' needs a module whose TABLES contains it: write "
            f"{files.report}, or remove the name (only '{next(iter(ENDS))}' needs no module)"
        )


def _require_name(name: str, what: str) -> None:
    """Raise `ConfigError` for a name that cannot be a Python module or a Snakemake target."""
    if not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) or keyword.iskeyword(name):
        raise ConfigError(
            f"{what} cannot be the name of a paper, because Python imports its folder: "
            "use letters, digits and underscores, starting with a letter"
        )
    if name in TARGETS or name.startswith(("run_", "tables_", "notebook_")):
        raise ConfigError(f"{what} is the name of a workflow rule: use another name")

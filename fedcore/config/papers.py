"""Where the files of a paper lie: in the checkout's folders, or beside one another elsewhere.

The configuration names a paper of the checkout by its name, and any other by the path of its file,
``<folder>/<name>.yaml``. Beside that file may lie ``<name>.claims.yaml``, what is printed;
``<name>.py``, a module with the tables; and ``<name>.ipynb``, a notebook that draws the figures.
"""

from __future__ import annotations

import importlib.util
import json
import keyword
import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedcore.config import arena
from fedcore.errors import ConfigError, require_known

FOLDER = Path("config/papers")  # of a checkout
REPORTS = "fedcore.reports.papers"
DEFAULT_TABLES = "fedcore.reports.default_tables"  # of a paper without a module of its own
ENDS = {"ends": "What every run ended with, a row per repeat"}
ENDING = ".yaml"
# Names of rules: a paper of this name could not be a target of Snakemake.
TARGETS = ("all", "everything", "fetch", "problem", "plan", "verdicts", "summary", "report")


@dataclass(frozen=True)
class PaperFiles:
    """Files of one paper; all but the first may be missing.

    Attributes
    ----------
    name : str
        Names its results and its rules, and seeds its random streams.
    paper : path
        Problems and experiments.
    claims : path
        What is printed; without it there are no verdicts.
    report : path
        Module with the tables; without it there is the one of `DEFAULT_TABLES`.
    module : str
        Import path of `report`.
    notebook : path
        It draws the figures; without it there are none.
    """

    name: str
    paper: Path
    claims: Path
    report: Path
    module: str
    notebook: Path

    @property
    def tables(self) -> str:
        """Import path of the module that makes the tables."""
        return self.module if self.report.is_file() else DEFAULT_TABLES

    @property
    def outside(self) -> bool:
        """Whether the configuration names it by the path of its file."""
        return not self.module.startswith(f"{REPORTS}.")

    @property
    def entry(self) -> str:
        """What the configuration calls the paper: its name, or the path of its file."""
        return self.paper.as_posix() if self.outside else self.name

    @property
    def beside(self) -> str:
        """What a command begins with that imports modules beside a paper from elsewhere."""
        folder = shlex.quote(str(self.report.parent.absolute()))
        return f'PYTHONPATH="$PYTHONPATH":{folder} ' if self.outside else ""

    def described(self) -> dict[str, str]:
        """Return what a plan keeps of them.

        Paths are as given; those of the checkout begin at its root, wherever a workflow runs.
        """
        paths = {name: getattr(self, name) for name in ("paper", "claims", "report")}
        if not self.outside:
            root = self.report.parents[len(REPORTS.split("."))]
            paths = {name: path.relative_to(root) for name, path in paths.items()}
        told = {name: path.as_posix() for name, path in paths.items()}
        return {**told, "entry": self.entry, "tables": self.tables}


def own(folder: Path = FOLDER) -> dict[str, PaperFiles]:
    """Return the files of the checkout's papers by name, and last the arena's if there is one."""
    found = {file.stem: own_files(file.stem, folder) for file in sorted(folder.glob("*.yaml"))}
    contest = own_files(arena.NAME, folder)
    return found | ({arena.NAME: contest} if contest.paper.is_file() else {})


def own_files(name: str, folder: Path = FOLDER) -> PaperFiles:
    """Return where the files of a paper of the checkout lie; see `own`."""
    root = folder.parents[1]
    return PaperFiles(
        name,
        (folder.parent if name == arena.NAME else folder) / f"{name}{ENDING}",
        folder.parent / "claims" / f"{name}{ENDING}",
        Path(root, *REPORTS.split("."), f"{name}.py"),
        f"{REPORTS}.{name}",
        root / "notebooks" / f"{name}.ipynb",
    )


def find(entry: str, known: Mapping[str, PaperFiles]) -> PaperFiles:
    """Return the files of a paper as the configuration names it.

    Parameters
    ----------
    entry : str
        Name of a paper of the checkout, or path of a file elsewhere, that ends in ``.yaml``; a
        relative one starts at the working directory.
    known : mapping
        The checkout's papers, see `own`.
    """
    if not entry.endswith(ENDING):
        if set(entry) & set("./"):
            raise ConfigError(
                f"papers: '{entry}' is neither a name nor a path that ends in {ENDING}"
            )
        _require_name(entry, f"papers: '{entry}'")
        require_known(entry, known, "papers: unknown paper")
        return known[entry]
    path = Path(os.path.expanduser(entry))
    if set(entry) & set("{}"):
        raise ConfigError(f"papers: {entry}: braces are Snakemake's; rename the file or its folder")
    if not path.is_file():
        raise ConfigError(
            f"papers: there is no file {entry}; a relative path starts at {Path.cwd()}"
        )
    _require_name(path.stem, f"papers: {entry}: '{path.stem}'")
    if (same := known.get(path.stem)) is not None:
        if same.paper.resolve() == path.resolve():
            return same
        raise ConfigError(
            f"papers: {entry} has the name of {same.paper}, and so would their results: rename it"
        )
    return PaperFiles(
        path.stem,
        path,
        path.with_suffix(f".claims{ENDING}"),
        path.with_suffix(".py"),
        path.stem,
        path.with_suffix(".ipynb"),
    )


def chosen(entries: Iterable[str], known: Mapping[str, PaperFiles]) -> dict[str, PaperFiles]:
    """Return the files of several papers by name; raises as `find`, and if two share a name."""
    found: dict[str, PaperFiles] = {}
    for entry in entries:
        files = find(entry, known)
        if files.name in found:
            raise ConfigError(
                f"papers: {found[files.name].paper} and {entry} have one name, and so would their "
                "results: rename one"
            )
        found[files.name] = files
    return found


def claims_of(name: str, plan: Mapping[str, Any] | None) -> Path:
    """Return the claims file of a paper that has run, as its plan says; may be missing.

    Of a plan that was made before plans said it, the paper is one of the checkout.
    """
    told = (plan or {}).get("files")
    return Path(told["claims"]) if told else own_files(name).claims


def entry_of(results: Path, name: str) -> str | None:
    """Return what a paper is called in the run of a folder; None if it has no plan."""
    try:
        plan = json.loads((results / "plans" / f"{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return str(plan.get("files", {}).get("entry", name))


def make_importable(report: Path, module: str) -> None:
    """Let Python find the module with the tables of a paper from elsewhere, if it has one."""
    if "." in module or not report.is_file():  # a module of fedcore, or none
        return
    folder = str(report.parent.absolute())
    if folder not in sys.path:
        sys.path.append(folder)  # last, so that it hides nothing
        importlib.invalidate_caches()
    found = importlib.util.find_spec(module)
    origin = found.origin if found else None
    if origin is None or Path(origin).resolve() != report.resolve():
        raise ConfigError(
            f"papers: {report} cannot be imported, as another module is called "
            f"'{module}' ({origin}): rename the paper"
        )


def require_drawable(files: PaperFiles, settings: Mapping[str, Any]) -> None:
    """Refuse tables and figures that a paper's file names and that nothing makes."""
    if settings["figures"] and not files.notebook.is_file():
        raise ConfigError(
            f"{files.paper}, figures: '{next(iter(settings['figures']))}' needs a notebook that "
            f"draws it: write {files.notebook}, or take the name out"
        )
    others = [name for name in settings["tables"] if name not in ENDS]
    if others and files.tables == DEFAULT_TABLES:
        raise ConfigError(
            f"{files.paper}, tables: '{others[0]}' needs a module whose TABLES has it: write "
            f"{files.report}, or take the name out; without it there is '{next(iter(ENDS))}' alone"
        )


def _require_name(name: str, what: str) -> None:
    """Refuse a name that cannot be a Python module or a target."""
    if not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) or keyword.iskeyword(name):
        raise ConfigError(
            f"{what} cannot be the name of a paper, as its report is a Python module: "
            "take letters, digits and underscores, a letter first"
        )
    if name in TARGETS or name.startswith(("run_", "tables_", "notebook_")):
        raise ConfigError(f"{what} is a rule of the workflow: take another name")

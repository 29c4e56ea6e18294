"""The code of modules and notebooks, read without executing it."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
from functools import cache
from pathlib import Path

from fedcore.errors import ConfigError


@cache
def find(module: str) -> Path | None:
    """Return the file of a module, found without executing the module; None when there is none.

    A package without ``__init__.py`` is its folder.
    """
    if "." in module:
        parent = find(module.rpartition(".")[0])
        if parent is None or not (parent.is_dir() or parent.name == "__init__.py"):
            return None
        leaf = (parent if parent.is_dir() else parent.parent) / module.rpartition(".")[2]
        for candidate in (leaf / "__init__.py", leaf.with_suffix(".py")):
            if candidate.is_file():
                return candidate
        return None
    spec = importlib.util.find_spec(module)
    if spec and not spec.origin and spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return Path(spec.origin) if spec and spec.origin else None


def parsed(code: bytes, what: object) -> ast.Module:
    """Return the syntax tree of Python code."""
    try:
        return ast.parse(code)
    except SyntaxError as error:
        place = f"{what}, line {error.lineno}" if error.lineno else what
        raise ConfigError(f"{place}: {error.msg}") from error
    except ValueError as error:  # a null byte
        raise ConfigError(f"{what} is not Python: {error}") from error


def notebook(path: str | os.PathLike[str]) -> ast.Module:
    """Return the syntax tree of the code cells of a notebook, without Jupyter's commands."""
    try:
        cells = json.loads(Path(path).read_bytes())["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError) as error:  # ValueError: not JSON, or not UTF-8
        raise ConfigError(f"{path} is not a notebook ({type(error).__name__}: {error})") from error
    lines = [line for cell in code for line in cell.splitlines()]
    kept = [line for line in lines if not line.lstrip().startswith(("%", "!"))]
    return parsed("\n".join(kept).encode(), f"{path}, its code")

"""Fingerprint of code: what it does, not how it is laid out or documented.

The fingerprint of a module is the sha256 of its syntax tree without comments and docstrings,
together with those of all modules of the same package that it imports, directly or not. Snakemake
gets it as a parameter of a job, so that a change of code, and only that, makes the job run again.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Iterable
from functools import cache
from pathlib import Path


def fingerprint(*modules: str) -> str:
    """Return the fingerprint of `modules` and of what they import from their own packages.

    Parameters
    ----------
    *modules : str
        Import paths.

    Returns
    -------
    str
        16 hexadecimal digits.
    """
    digest = hashlib.sha256()
    for name in sorted(closure(modules)):
        digest.update(f"{name}:{_tree(name)[0]}\n".encode())
    return digest.hexdigest()[:16]


def closure(modules: Iterable[str]) -> set[str]:
    """Return `modules` and all that they import, inside their own top-level packages."""
    todo, seen = set(modules), set()
    while todo:
        name = todo.pop()
        seen.add(name)
        todo |= set(_tree(name)[1]) - seen
    return seen


@cache
def _tree(module: str) -> tuple[str, tuple[str, ...]]:
    """Canonical dump of a module's syntax tree, and the modules of its package that it imports."""
    source = _source(module)
    if source is None:
        raise ModuleNotFoundError(f"no Python source for module {module}")
    tree = ast.parse(source.read_text(encoding="utf-8"))
    package = module.split(".")[0]
    imported: set[str] = set()
    for node in ast.walk(tree):
        _drop_docstring(node)
        if isinstance(node, ast.Import):
            imported |= {a.name for a in node.names if a.name.split(".")[0] == package}
        elif isinstance(node, ast.ImportFrom):
            base = _imported_from(node, module, is_package=source.name == "__init__.py")
            if base.split(".")[0] != package:
                continue
            for alias in node.names:
                # ``from package import module`` depends on the module, not on the package.
                inner = f"{base}.{alias.name}"
                imported.add(inner if _source(inner) else base)
    return _canonical(tree), tuple(sorted(name for name in imported if _source(name)))


def _canonical(node: object) -> str:
    """Text of a syntax tree that does not depend on the version of Python, as `ast.dump` does."""
    if isinstance(node, ast.AST):
        fields = [
            f"{key}={_canonical(value)}"
            for key, value in ast.iter_fields(node)
            if value != [] and (value is not None or isinstance(node, ast.Constant))
        ]
        return f"{type(node).__name__}({','.join(fields)})"
    if isinstance(node, list):
        return f"[{','.join(map(_canonical, node))}]"
    return repr(node)


def _imported_from(node: ast.ImportFrom, module: str, *, is_package: bool) -> str:
    """Absolute name of the module that a ``from … import`` in `module` names."""
    if not node.level:
        return str(node.module)
    parts = module.split(".")
    anchor = parts[: len(parts) - node.level + is_package]
    return ".".join([*anchor, node.module] if node.module else anchor)


def _drop_docstring(node: ast.AST) -> None:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            if isinstance(first.value.value, str):
                node.body = node.body[1:] or [ast.Pass()]


@cache
def _source(module: str) -> Path | None:
    """File of a module, found without executing it; None when there is none."""
    if "." in module:
        parent = _source(module.rpartition(".")[0])
        if parent is None or parent.name != "__init__.py":
            return None
        leaf = parent.parent / module.rpartition(".")[2]
        for candidate in (leaf.with_suffix(".py"), leaf / "__init__.py"):
            if candidate.is_file():
                return candidate
        return None
    spec = importlib.util.find_spec(module)
    return Path(spec.origin) if spec and spec.origin else None

"""Digests of the code of a Snakemake job: all modules that it imports, even indirectly.

Only modules of fedcore and of the importing module's own package are included. The ``__init__.py``
of every package that contains an included module is included, too. Modules in `NOT_COUNTED`, which
change no result, are left out. Imports, also those inside functions, are read from the source text;
no module is executed. A module's digest covers its syntax tree except for the parts that
`_drop_words` removes, such as docstrings. Snakemake gets each module's digest as a parameter of the
job. If a digest changes, Snakemake runs the job again and names the changed module.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from fedcore.errors import ConfigError
from fedcore.files import checksums

OWN_PACKAGE = __name__.split(".")[0]
# Modules that only make messages or check input: no number depends on them, so an edit of them runs
# nothing again. The package itself holds the version and names that are imported on first use.
NOT_COUNTED = {"fedcore", "fedcore.errors", "fedcore.words", "fedcore.validation"}
WORDS = {"citation", "look"}  # arguments of ``Algorithm(…)`` that change no number
BLOCKS = (ast.stmt, ast.excepthandler, ast.match_case)  # in which imports may stand


def fingerprint(*parts: object) -> str:
    """Return one digest of all arguments, such as modules' digests and settings."""
    return _digest("\n".join(map(repr, parts)))


@cache
def digests(*modules: str) -> tuple[tuple[str, str], ...]:
    """Return names and digests of `modules` and of the modules they import, sorted by name.

    A module in `NOT_COUNTED` is included only if it is an argument, not if another module imports
    it.

    Raises
    ------
    ModuleNotFoundError
        If a module does not exist.
    ConfigError
        If the text of a module is not valid Python.
    """
    todo, found = set(modules), dict[str, str]()
    while todo:
        module = todo.pop()
        found[module], imported = read_source(module)
        todo |= imported - found.keys() - NOT_COUNTED
    return tuple(sorted(found.items()))


def digest(module: str) -> str:
    """Return the digest of one module without its imports; raise the same errors as `digests`."""
    return read_source(module)[0]


def imported_by(path: str | os.PathLike[str], package: str) -> list[str]:
    """Return the modules of fedcore and of `package` that the code cells of a notebook import."""
    try:
        cells = json.loads(Path(path).read_bytes())["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError) as error:  # ValueError: not JSON, or not UTF-8
        raise ConfigError(f"{path} is not a notebook ({type(error).__name__}: {error})") from error
    lines = [line for cell in code for line in cell.splitlines()]
    kept = [line for line in lines if not line.lstrip().startswith(("%", "!"))]  # Jupyter's own
    tree = _parsed("\n".join(kept).encode(), f"{path}, its code")
    return sorted(set(_imports(tree, package, is_package=False)) - NOT_COUNTED)


def data_files(module: str) -> list[str]:
    """Return a line ``path sha256`` for each file in a module's package that is not Python code.

    If the module is in no package, the files are those in its folder whose names occur as strings
    in its code.
    """
    source = find_source(module)
    if source is None:
        return []
    folder = source.parent
    if (folder / "__init__.py").is_file():
        found = [file for file in folder.rglob("*") if file.suffix not in (".py", ".pyc")]
    else:
        tree = _parsed(source.read_bytes() if source.suffix == ".py" else b"", source)
        texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        found = [file for file in folder.iterdir() if file.name in texts]
    return [
        f"{f.relative_to(folder)} {checksums.file_sha256(f)}" for f in sorted(found) if f.is_file()
    ]


@cache
def find_source(module: str) -> Path | None:
    """Return the file of a module without executing the module, or None if there is no file.

    For a top-level package without ``__init__.py``, the result is the folder of the package.
    """
    base, _, leaf = module.rpartition(".")
    if not base:
        spec = importlib.util.find_spec(module)
        folders = list(spec.submodule_search_locations or []) if spec and not spec.origin else []
        return Path(spec.origin) if spec and spec.origin else next(map(Path, folders), None)
    parent = find_source(base)
    if parent is None or not (parent.is_dir() or parent.name == "__init__.py"):
        return None
    place = (parent if parent.is_dir() else parent.parent) / leaf
    files = (place / "__init__.py", place.with_suffix(".py"))
    return next((file for file in files if file.is_file()), None)


@cache
def read_source(module: str) -> tuple[str, frozenset[str]]:
    """Return the digest of a module, and the names of its imports and enclosing packages."""
    source = find_source(module)
    if source is None or source.is_dir():
        raise ModuleNotFoundError(f"module {module} has no Python source file")
    if source.suffix != ".py":  # a compiled module
        return checksums.file_sha256(source)[:16], frozenset()
    tree = _parsed(source.read_bytes(), source)
    imported = frozenset(_imports(tree, module, is_package=source.name == "__init__.py"))
    return _digest(_canonical(tree)), imported | frozenset(_packages(module))


def _packages(module: str) -> Iterator[str]:
    """Yield the packages that contain a module; Python executes their ``__init__.py`` first."""
    parts = module.split(".")
    packages = (".".join(parts[:i]) for i in range(1, len(parts)))
    yield from filter(_has_text, packages)


def _has_text(module: str) -> bool:
    source = find_source(module)
    return source is not None and source.is_file()


def _imports(tree: ast.Module, module: str, *, is_package: bool) -> Iterator[str]:
    """Yield the modules that a module imports from fedcore and from its own package.

    Imports under ``if TYPE_CHECKING`` are ignored.
    """
    own, todo = {OWN_PACKAGE, module.partition(".")[0]}, list[ast.AST]([tree])
    while todo:
        node = todo.pop()
        found: list[str] = []
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = module.split(".")
            base = parts[: len(parts) - node.level + is_package] if node.level else []
            package = ".".join([*base, *filter(None, [node.module])])
            found = [f"{package}.{alias.name}" for alias in node.names]  # a module, or its name
        for name in found:
            if name.partition(".")[0] in own:
                name = name if find_source(name) else name.rpartition(".")[0]
                if _has_text(name):
                    yield name
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            todo += node.orelse
        else:
            todo += [child for child in ast.iter_child_nodes(node) if isinstance(child, BLOCKS)]


def _parsed(code: bytes, what: object) -> ast.Module:
    """Return the syntax tree of Python code."""
    try:
        return ast.parse(code)
    except SyntaxError as error:
        place = f"{what}, line {error.lineno}" if error.lineno else what
        raise ConfigError(f"{place}: {error.msg}") from error
    except ValueError as error:  # a null byte
        raise ConfigError(f"{what} is not Python: {error}") from error


def _drop_words(node: ast.AST) -> None:
    """Remove docstring, arguments in `WORDS`, and dict entries whose value names a function."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Algorithm":
        node.keywords = [word for word in node.keywords if word.arg not in WORDS]
    elif isinstance(node, ast.Dict):  # a job depends on the module that it looks up
        kept = [pair for pair in zip(node.keys, node.values, strict=True) if not _place(pair[1])]
        node.keys, node.values = [key for key, _ in kept], [value for _, value in kept]


def _place(node: ast.expr) -> bool:
    """Return whether a node is a string that names a function, such as "fedcore.linalg:orth"."""
    text = node.value if isinstance(node, ast.Constant) else None
    return isinstance(text, str) and text.startswith(f"{OWN_PACKAGE}.") and ":" in text


def _canonical(node: object) -> str:
    """Return a syntax tree as text without docstrings; all Python versions give the same text."""
    if isinstance(node, ast.AST):
        _drop_words(node)
        fields = [
            f"{key}={_canonical(value)}"
            for key, value in ast.iter_fields(node)
            if value is not None and value != []
        ]
        return f"{type(node).__name__}({','.join(fields)})"
    return f"[{','.join(map(_canonical, node))}]" if isinstance(node, list) else repr(node)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]

"""Fingerprints of code, which do not depend on layout, comments, docstrings or module paths.

Nor do they depend on what an algorithm says for people and figures, see `WORDS`.

The fingerprint of a module is a sha256 over its syntax tree and over the trees of all modules that
it imports, directly or not, from its own package and from fedcore. An import is represented by the
names that it binds and by the content of the imported module, so moving a module changes no
fingerprint. The position of an import counts only if a name that it binds has another meaning
elsewhere in the module. For one function, ``module:function``, the statements that the function
uses and their imports count. Entries ``name: "module:function"`` of fedcore's tables do not count,
since who takes such a function from a table passes it to `fingerprint`; so a new entry runs nothing
again. Snakemake gets the fingerprint as a parameter of a job, and runs the job again when it
changes.

Code in the ``__init__.py`` of a package counts only if it binds an imported name, or if the package
itself is imported. Other packages, such as NumPy, do not count.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import itertools
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from fedcore.experiments import sources
from fedcore.files import checksums

OWN = __name__.split(".")[0]
WORDS = {"citation", "look"}  # arguments of ``Algorithm(…)`` that change no number
Reader = Callable[[str, bytes, Callable[[], Any]], Any]


def fingerprint(*code: str, words: Iterable[str] = ()) -> str:
    """Return the fingerprint of modules or functions, and of what they import."""
    return _fingerprint(frozenset(code), tuple(words))


@cache
def _fingerprint(code: frozenset[str], words: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for text in sorted(_texts(closure(code))):
        digest.update(f"{text}\n".encode())
    for word in words:
        digest.update(f"{word!r}\n".encode())
    return digest.hexdigest()[:16]


def closure(code: Iterable[str]) -> set[str]:
    """Return `code` and all modules that it imports, from its own packages and from fedcore."""
    todo, seen = set(code), set()
    while todo:
        name = todo.pop()
        seen.add(name)
        todo |= {imported.module for imported in _code(name).imports} - seen
    return seen


def parts(*code: str) -> dict[str, str]:
    """Return a short hash of every function, class and value that a fingerprint covers."""
    found: dict[str, str] = {}
    for one in sorted(closure(code)):
        module = one.partition(":")[0]
        for name, text in _code(one).statements.items():
            found[f"{module}:{name}" if name else module] = text
    return found


def read_by(reader: Reader) -> None:
    """Let `reader` decide whether code is read; it takes its name, its bytes, and what reads it."""
    global _reader
    _reader = reader


_reader: Reader = lambda code, source, read: read()  # noqa: E731


def imported_by(path: str | os.PathLike[str], package: str) -> list[str]:
    """Return the modules of fedcore and of `package` that the code cells of a notebook import."""
    tree = sources.notebook(path)
    return sorted({imported.module for imported in _take_imports(tree, package, is_package=False)})


def data_files(module: str) -> list[str]:
    """Return ``path sha256`` of every file in a module's package that is not Python code.

    A module outside a package shares its folder with others; only files whose names are strings in
    its code count.
    """
    source = sources.find(module.partition(":")[0])
    if source is None:
        return []
    folder = source.parent
    if (folder / "__init__.py").is_file():
        found = [file for file in folder.rglob("*") if file.suffix not in (".py", ".pyc")]
    else:
        tree = sources.parsed(source.read_bytes() if source.suffix == ".py" else b"", source)
        texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        found = [file for file in folder.iterdir() if file.name in texts]
    return [f"{f.relative_to(folder)} {checksums.of(f)}" for f in sorted(found) if f.is_file()]


class Imported(NamedTuple):
    """A name that an import binds, of fedcore or of the importing module's own package."""

    bound: str
    name: str  # as the module calls it; empty for the module itself
    module: str


class Code(NamedTuple):
    """What is read of a module, or of what a function uses of it.

    Attributes
    ----------
    tree : str
        Hash of the syntax tree, without own imports and docstrings.
    imports : list of Imported
    statements : dict of str to str
        Short hashes of what is bound, by name; "" is the rest.
    """

    tree: str
    imports: list[Imported]
    statements: dict[str, str]


@cache
def _code(code: str) -> Code:
    """Return what is read of a module or function; ModuleNotFoundError when there is none."""
    module = code.partition(":")[0]
    source = sources.find(module)
    if source is None:
        raise ModuleNotFoundError(f"no Python source for module {module}")
    if source.suffix != ".py":  # a compiled module
        content = checksums.of(source)
        return Code(content, [], {"": content[:12]})
    text = source.read_bytes()
    tree, imports, statements = _reader(code, text, lambda: _read(code, text, source))
    return Code(tree, [Imported(*each) for each in imports], statements)


def _read(code: str, text: bytes, source: Path) -> Code:
    """Read the text of a module; see `_code`."""
    module, _, function = code.partition(":")
    tree = sources.parsed(text, source)
    if function:
        tree.body = _used(tree.body, function)
        if not tree.body:
            raise ModuleNotFoundError(f"no function {function} in module {module}")
    for node in ast.walk(tree):
        _drop_docstring(node)
        _drop_words(node)
    imported = _take_imports(tree, module, is_package=source.name == "__init__.py")
    dumps = [_canonical(statement) for statement in tree.body]
    found: dict[str, str] = {}
    for statement, dump in zip(tree.body, dumps, strict=True):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            continue
        for name in list(_bound(statement)) or [""]:
            found[name] = _digest(found.get(name, "") + dump)[:12]
    return Code(_digest("\n".join(dumps)), sorted(set(imported)), found)


def _texts(codes: Iterable[str]) -> list[str]:
    """Return what is hashed of each module: its tree, and names and contents of what it imports.

    The loop refines the contents until modules that differ only in indirect imports differ, too.
    """
    trees = {code: _code(code) for code in codes}
    contents = {code: _content(code) for code in trees}
    while True:
        texts = {
            code: f"{tree} {sorted((bound, name, contents[m]) for bound, name, m in imported)}"
            for code, (tree, imported, _) in trees.items()
        }
        if len(set(texts.values())) == len(set(contents.values())):
            return list(texts.values())
        contents = {code: _digest(text) for code, text in texts.items()}


@cache
def _content(code: str) -> str:
    """Return the hash of a module's tree and of the names, not the content, of its imports."""
    tree, imported, _ = _code(code)
    return _digest(f"{tree} {sorted(origin[:2] for origin in imported)}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _take_imports(tree: ast.AST, module: str, *, is_package: bool) -> list[Imported]:
    """Remove imports of own modules from a syntax tree, and return them."""
    taker = _Imports(module, is_package, _ambiguous(tree, module, is_package=is_package))
    taker.visit(tree)
    return taker.found


class _Imports(ast.NodeTransformer):
    """Removes imports of own modules, and the packages from strings that are own import paths.

    An import that binds an ambiguous name leaves a numbered mark in its place.
    """

    def __init__(self, module: str, is_package: bool, ambiguous: set[str]) -> None:
        self.module, self.is_package, self.ambiguous = module, is_package, ambiguous
        self.packages = {OWN, module.split(".")[0]}
        self.numbers = itertools.count()
        self.found: list[Imported] = []

    def visit_Import(self, node: ast.Import) -> ast.AST:
        """``import package.module`` keeps its path, because later code names it."""
        for alias in node.names:
            if _is_own(alias.name, self.packages):
                bound, (base, _, name) = alias.asname or alias.name, alias.name.rpartition(".")
                self.found.append(Imported(bound, "", alias.name))
                if base and _gives(base, name):
                    self.found.append(Imported(bound, name, base))
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        """``from package import name``, which may be a module of the package."""
        base = _imported_from(node, self.module, is_package=self.is_package)
        if not _is_own(base, self.packages):
            return node
        marks = []
        for alias in node.names:
            bound, inner = alias.asname or alias.name, f"{base}.{alias.name}"
            if bound in self.ambiguous:
                bound = f"{bound} {next(self.numbers)}"
                marks.append(ast.alias(bound))
            if _is_own(inner, self.packages):
                self.found.append(Imported(bound, "", inner))
            if not _is_own(inner, self.packages) or _gives(base, alias.name):
                self.found.append(Imported(bound, alias.name, base))
        return ast.ImportFrom(None, marks, 0) if marks else None

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        """Drop the entries ``name: "module:function"`` of fedcore's tables."""
        if self.module.startswith(f"{OWN}."):
            items = list(zip(node.keys, node.values, strict=True))
            kept = [(key, value) for key, value in items if ":" not in _own_path(value)]
            node.keys, node.values = [key for key, _ in kept], [value for _, value in kept]
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """Shorten a string such as ``"fedcore.linalg:orth"``; its user gets that code hashed."""
        path, colon, function = _own_path(node).partition(":")
        return ast.Constant(path.rpartition(".")[2] + colon + function) if path else node


def _own_path(node: ast.AST) -> str:
    """Return a string that is the path of a module or function of fedcore; else an empty one."""
    text = node.value if isinstance(node, ast.Constant) else None
    if not isinstance(text, str) or not text.startswith(f"{OWN}."):
        return ""
    path = text.partition(":")[0]
    return text if path.replace(".", "").isidentifier() and sources.find(path) else ""


def _ambiguous(tree: ast.AST, module: str, *, is_package: bool) -> set[str]:
    """Return the names that a module imports and that mean something else elsewhere in it.

    A name local to a function counts only if some function imports it.
    """
    bindings = list(_bindings(tree, module, is_package=is_package))
    imported = {name for name, origin, top in bindings if origin and not top}
    meanings = defaultdict(set)
    for name, origin, top in bindings:
        if top or origin or name in imported:
            meanings[name].add(origin)
    every = "*" in meanings  # a star import may bind any name
    return {n for n, found in meanings.items() if every or len(found) > 1 or hasattr(builtins, n)}


def _gives(package: str, name: str) -> bool:
    """Whether `name` in a package may be something else than its module of this name."""
    source = sources.find(package)
    if source is None or source.name != "__init__.py":
        return False
    tree = sources.parsed(source.read_bytes(), source)
    return any(
        top and bound in (name, "*") and origin != f"{package}.{name}"
        for bound, origin, top in _bindings(tree, package, is_package=True)
    )


def _bindings(
    node: ast.AST, module: str, *, is_package: bool, top: bool = True
) -> Iterator[tuple[str, str, bool]]:
    """Yield each bound name, its origin ("" if not imported), and whether it is at module level."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ImportFrom):
            base = _imported_from(child, module, is_package=is_package)
            for alias in child.names:
                yield alias.asname or alias.name, f"{base}.{alias.name}", top
            continue
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield alias.asname or alias.name.split(".")[0], "", top
            continue
        if isinstance(child, ast.Name):
            if not isinstance(child.ctx, ast.Load):
                yield child.id, "", top
        else:
            name = child.arg if isinstance(child, ast.arg) else getattr(child, "name", None)
            if isinstance(name, str):
                yield name, "", top
        below = top and not isinstance(child, _SCOPES)
        yield from _bindings(child, module, is_package=is_package, top=below)


_SCOPES = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)


def _is_own(module: str, packages: set[str]) -> bool:
    return module.split(".")[0] in packages and sources.find(module) is not None


def _used(body: list[ast.stmt], name: str) -> list[ast.stmt]:
    """Return the statements of a module on which one of its names depends, in their order.

    These are the statements that bind the name, or a name that they use in turn. If there are any,
    all statements that bind nothing, such as a call or a condition, are added with what they use.
    """
    binds = {statement: set(_bound(statement)) for statement in body}
    if not any(name in names for names in binds.values()):
        return []
    todo, known, used = [name], {name}, set()
    for statement, names in binds.items():
        if not names:
            todo += _names(statement)
    while todo:
        name = todo.pop()
        known.add(name)
        for statement, names in binds.items():
            if name in names and statement not in used:
                used.add(statement)
                todo += [other for other in _names(statement) if other not in known]
    kept = [s for s, names in binds.items() if s in used or (not names and not _is_text(s))]
    return [_narrowed(statement, known) for statement in kept]


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement at module level binds; none for a call or a condition."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        for alias in statement.names:
            if alias.name != "*":
                yield alias.asname or alias.name.split(".")[0]
    elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


def _names(statement: ast.AST) -> list[str]:
    """Return every name that a statement mentions."""
    return [node.id for node in ast.walk(statement) if isinstance(node, ast.Name)]


def _narrowed(statement: ast.stmt, known: set[str]) -> ast.stmt:
    """Return an import without its unused names, and any other statement as it is."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        kept = [a for a in statement.names if (a.asname or a.name.split(".")[0]) in known]
        statement.names = kept or statement.names
    return statement


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _canonical(node: object) -> str:
    """Return a dump of a syntax tree that, unlike `ast.dump`'s, all Python versions share."""
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
    """Return the absolute name of the module that a ``from … import`` in `module` names."""
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


def _drop_words(node: ast.AST) -> None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == "Algorithm":
            node.keywords = [word for word in node.keywords if word.arg not in WORDS]

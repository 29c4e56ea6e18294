"""Client steps by name: what a step is in a message of MPI, and the receiver's own copy of it.

A step is a function of an installed module, or one defined inside such a function, or a
`functools.partial` or a bound method of these. Its captured values cross with it; arrays do not,
for they would be messages that no ledger counts.

Its fingerprint covers bytecode, names and constants, not lines or comments, of the step and of the
functions, classes, tables and constants of its own package that it names, directly or not. Another
minor version of Python compiles to other bytecode, and so to another fingerprint.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from fedcore.client_steps.values import Writer, installed
from fedcore.errors import RefusedError

INSIDE = ".<locals>."


def name_step(value: Any, writer: Writer) -> Any:
    """Return the skeleton of a step or of a function that it holds; None for any other value.

    Raises
    ------
    RefusedError
        For a step that is not of an installed module, or that holds an array.
    """
    before, writer.bare = writer.bare, True
    try:
        if isinstance(value, FunctionType):
            return {"step": _function(value, writer)}
        if isinstance(value, functools.partial):
            parts = [value.func, list(value.args), dict(value.keywords)]
            return {"partial": writer.skeleton(parts)}
        if isinstance(value, MethodType):
            return {"method": writer.skeleton([value.__self__, value.__func__.__name__])}
    except RecursionError as error:
        raise RefusedError("a step that holds itself cannot cross to another process") from error
    finally:
        writer.bare = before
    return None


def _function(step: FunctionType, writer: Writer) -> dict[str, Any]:
    module, name, code = step.__globals__["__name__"], step.__code__.co_qualname, step.__code__
    in_file = hasattr(sys.modules.get(module), "__file__") and module != "__main__"
    if not in_file or name.startswith("<lambda>"):
        raise RefusedError(
            f"the step {name} of {module} has no name in an installed module, and no code crosses: "
            "define it by def in a module"
        )
    about = {"module": module, "name": name, "code": fingerprint(code, module)}
    if INSIDE not in name:
        return about
    if getattr(step, "post_processing", False):
        raise RefusedError(
            f"the step {name} is marked as post-processing inside a function: define it in the "
            "module itself, so that clients need not trust the mark"
        )
    held = [cell.cell_contents for cell in step.__closure__ or ()]
    defaults = step.__defaults__, step.__kwdefaults__
    return {**about, "holds": writer.skeleton([held, *defaults])}


def find_step(kind: str, content: Any, value_of: Callable[[Any], Any]) -> Any:
    """Return what `name_step` has described, for `fedcore.client_steps.values.decode`.

    Raises
    ------
    RefusedError
        For a step that is not installed here, or whose fingerprint differs from that of the
        installed one.
    """
    if kind == "partial":
        step, args, keywords = value_of(content)
        return functools.partial(step, *args, **keywords)
    if kind == "method":
        owner, name = value_of(content)
        return getattr(owner, name)
    if kind != "step":
        raise RefusedError(f"nothing of the kind {kind!r} is expected here")
    module, name, code = content["module"], content["name"], content["code"]
    outer = inspect.unwrap(installed(module, name.partition(INSIDE)[0]))
    if not isinstance(outer, FunctionType):
        raise RefusedError(f"{name} of {module} is no step here")
    found = [c for c in _codes(outer.__code__, name) if fingerprint(c, module) == code]
    if not found:
        raise RefusedError(
            f"the step {name} of {module} differs from the one installed here: install the "
            "version of fedcore, its plug-ins and Python that rank 0 has"
        )
    if INSIDE not in name:
        return outer
    held, defaults, kwdefaults = value_of(content["holds"])
    cells = tuple(CellType(part) for part in held)
    step = FunctionType(found[0], vars(sys.modules[module]), None, defaults, cells)
    step.__kwdefaults__ = kwdefaults
    return step


def _codes(code: CodeType, name: str) -> Iterator[CodeType]:
    """Yield the code inside `code` that has a qualified name, `code` itself included."""
    if code.co_qualname == name:
        yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _codes(const, name)


PLAIN = (int, float, complex, str, bytes, bool, type(None))


@cache
def fingerprint(code: CodeType, module: str) -> str:
    """Return the fingerprint of code that a module of an installed package defines.

    Parameters
    ----------
    code : code
    module : str
        Name of the module, which is imported already.

    Returns
    -------
    str
        32 hexadecimal digits.
    """
    package = module.partition(".")[0]
    texts, seen, ahead = [], set(), [(code, module)]
    while ahead:
        one, where = ahead.pop()
        key = (where, one.co_qualname, _text(one))
        if key in seen:
            continue
        seen.add(key)
        texts.append(f"{one.co_qualname} {key[2]}")
        for name, value in _named(one, where):
            if isinstance(value, PLAIN):
                texts.append(f"{one.co_qualname} {name} = {value!r}")
            else:
                ahead += _codes_in(value, package)
    return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()[:32]


def _text(code: CodeType) -> str:
    """Return what a code object does, as text."""
    consts = [_text(c) if isinstance(c, CodeType) else _constant(c) for c in code.co_consts]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    return f"{code.co_code.hex()} {names} {counts} {consts}"


def _constant(value: Any) -> str:
    return f"{sorted(map(repr, value))}" if isinstance(value, frozenset) else repr(value)


def _all_names(code: CodeType) -> set[str]:
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*map(_all_names, inner))


def _named(code: CodeType, module: str) -> Iterator[tuple[str, Any]]:
    """Yield the globals that code names, and what it names of modules among them."""
    held, names = vars(sys.modules[module]), _all_names(code)
    for name in sorted(names & held.keys()):
        value = held[name]
        if isinstance(value, ModuleType):
            inner = vars(value)
            yield from ((f"{name}.{n}", inner[n]) for n in sorted(names & inner.keys()))
        else:
            yield name, value


def _codes_in(value: Any, package: str, depth: int = 0) -> Iterator[tuple[CodeType, str]]:
    """Yield the code of a function, class or table of the package, with its module."""
    if isinstance(value, Mapping) and depth < 3:
        for part in value.values():
            yield from _codes_in(part, package, depth + 1)
        return
    value = inspect.unwrap(value) if callable(value) else value
    module = getattr(value, "__module__", None) or ""
    if module.partition(".")[0] != package:
        return
    if isinstance(value, FunctionType):
        yield value.__code__, module
    elif isinstance(value, type):
        for part in vars(value).values():
            part = getattr(part, "fget", None) or getattr(part, "__func__", part)
            if isinstance(part, FunctionType) and part.__module__ == module:
                yield part.__code__, module

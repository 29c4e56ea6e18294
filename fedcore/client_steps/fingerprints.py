"""Fingerprints of client steps: their code, and that of all in their package that they name.

The fingerprint covers bytecode, names and constants, not lines or comments, of the step and of the
functions, classes, tables and constants of its own package that it names, directly or not. Another
minor version of Python compiles to other bytecode, and so to another fingerprint.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

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
                ahead += _codes(value, package)
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


def _codes(value: Any, package: str, depth: int = 0) -> Iterator[tuple[CodeType, str]]:
    """Yield the code of a function, class or table of the package, with its module."""
    if isinstance(value, Mapping) and depth < 3:
        for part in value.values():
            yield from _codes(part, package, depth + 1)
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

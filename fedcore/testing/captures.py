"""Find values that a client step can read besides its data, its state and its message.

A client step, a function that runs at a client, could read a value that the server knows but never
sent. The ledger, which counts the traffic, would miss such a value. Besides its data and state, a
step may therefore read only hyper-parameters, broadcast values, and numbers that do not depend on
the clients' data. A step that runs outside the protocol (`Federation.observe`) must get its arrays
in its message.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Set
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any
from unittest import mock

import numpy as np

from fedcore.federation.execution import name_of
from fedcore.federation.federation import Federation

NUMBERS = int, float, complex, np.generic
HOW = ("gather", "sum", "mean", "local", "observe")

Change = Callable[[Any], Any]  # of a step


@contextlib.contextmanager
def steps_seen(change: Change, after: Callable[[Any], None] = lambda step: None) -> Iterator[None]:
    """Return a context in which every client step is replaced by ``change(step)``.

    After a method of `Federation` has run a changed step, ``after`` is called with this step.
    """

    def seen(exchange: Any) -> Any:
        @functools.wraps(exchange)
        def changed(self: Federation, step: Any, *message: Any, **options: Any) -> Any:
            changed_step = change(step)
            answer = exchange(self, changed_step, *message, **options)
            after(changed_step)
            return answer

        return changed

    with mock.patch.multiple(Federation, **{how: seen(getattr(Federation, how)) for how in HOW}):
        yield


@contextlib.contextmanager
def watched() -> Iterator[dict[str, Any]]:
    """Return a context that records which arrays and numbers client steps can reach.

    Each step is searched before it runs, and once more for arrays after it has run, because a step
    may write its data into a closure. The context yields a dict, which gets the places of arrays
    and random generators as ``places``, and the values of numbers as ``numbers``. The caller sets
    the entry ``params`` to the run's parameters, which clients may know.
    """
    found: dict[str, Any] = {"places": set(), "numbers": [], "params": None}

    def look(step: Any) -> None:
        found["places"] |= set(captured_arrays(step, found["params"]))

    def note(step: Any) -> Any:
        look(step)
        held = _reachable(step, found["params"])
        numbers = {place: repr(value) for place, value in held if isinstance(value, NUMBERS)}
        found["numbers"].append((name_of(step), numbers))
        return step

    with steps_seen(note, after=look):
        yield found


def captured_arrays(step: Any, params: Any = None) -> list[str]:
    """Return the places of arrays or random generators in `step`, such as ``"step.closure.Z"``.

    Arrays include PyTorch's tensors, and generators include PyTorch's generators. The search covers
    closures, defaults, globals that the code mentions, bound objects, partial arguments,
    containers, and all objects inside these. Functions, classes and modules that the code mentions
    are searched only if they belong to the step's own package. An array in a field of `params`, the
    run's parameters, is listed only if the searched code mentions the field's name.
    """
    found, named = [], set()
    torch = sys.modules.get("torch")
    kinds = (np.ndarray, np.random.Generator)
    kinds += () if torch is None else (torch.Tensor, torch.Generator)
    for place, value in _reachable(step, params):
        if isinstance(value, kinds):
            found.append(place)
        elif value is params and params is not None:
            found += [f"params.{k}" for k, v in vars(params).items() if isinstance(v, np.ndarray)]
        elif isinstance(value, FunctionType):
            named |= _names(value.__code__)
    read = {f"params.{name}" for name in named}
    return sorted(place for place in found if place in read or not place.startswith("params."))


def _reachable(step: Any, params: Any) -> Iterator[tuple[str, Any]]:
    """Yield place and value of each object that `step` can reach, except parts of `params`."""
    seen, ahead, package = {id(step): step}, [("step", step)], _package(step)
    while ahead:
        place, value = ahead.pop()
        yield place, value
        if value is params and params is not None:
            continue
        for name, part in _parts(value, package):
            if isinstance(part, NUMBERS) or id(part) not in seen:  # Python shares some numbers
                seen[id(part)] = part
                ahead.append((f"{place}.{name}", part))


def _parts(value: Any, package: str) -> Iterator[tuple[str, Any]]:
    """Yield an object's parts, such as closure cells or items, with their names.

    A function, class or module that the code mentions is a part only if it belongs to `package`.
    """
    if isinstance(value, FunctionType):
        code, named = value.__code__, _names(value.__code__)
        for name, cell in zip(code.co_freevars, value.__closure__ or (), strict=True):
            try:
                held = cell.cell_contents
            except ValueError:  # assigned later
                continue
            yield f"closure.{name}", held
        yield "defaults", value.__defaults__
        yield "kwdefaults", value.__kwdefaults__
        yield "attributes", vars(value)
        for place, part in _named(value.__globals__, named, package):
            yield f"globals.{place}", part
    elif isinstance(value, MethodType):
        yield from (("self", value.__self__), ("function", value.__func__))
    elif isinstance(value, staticmethod | classmethod):
        yield "function", value.__func__
    elif isinstance(value, functools.partial):
        yield from (("function", value.func), ("args", value.args), ("keywords", value.keywords))
    elif isinstance(value, Mapping):
        yield from ((str(key), part) for key, part in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((str(i), part) for i, part in enumerate(value))
    elif isinstance(value, type):
        if _package(value) == package:
            yield "bases", value.__bases__
            yield from vars(value).items()
    elif hasattr(value, "__dict__") and not isinstance(value, ModuleType):
        yield from vars(value).items()
        yield "class", type(value)


def _named(scope: Mapping[str, Any], names: Set[str], package: str) -> Iterator[tuple[str, Any]]:
    """Yield the objects that `names` denote in `scope`, with their names.

    In place of a module, the objects that `names` denote in this module are yielded. Functions,
    classes and modules of packages other than `package` are left out.
    """
    for name in sorted(names & scope.keys()):
        part = scope[name]
        if isinstance(part, FunctionType | type | ModuleType) and _package(part) != package:
            continue
        if isinstance(part, ModuleType):
            for place, held in _named(vars(part), names - {name}, package):
                yield f"{name}.{place}", held
        else:
            yield name, part


def _package(value: Any) -> str:
    """Return the package of a module, or of the module that defines a function or a class."""
    if isinstance(value, functools.partial):
        return _package(value.func)
    of = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return str(of).partition(".")[0]


def _names(code: CodeType) -> set[str]:
    """Return the names of globals and attributes in a function's code and in inner functions."""
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*map(_names, inner))

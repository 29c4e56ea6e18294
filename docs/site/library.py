"""The reference: public names, algorithms and metrics, from their docstrings."""

from __future__ import annotations

import json
import re
from pathlib import Path

import fedcore
from fedcore import algorithms as registry
from fedcore.algorithms import get, names
from fedcore.metrics import families
from fedcore.parts.convergence_test import with_tolerance
from fedcore.parts.params import Description, describe
from fedcore.reports.references import bibtex

ADDING = Path(__file__).parents[1] / "adding.md"
ROW = re.compile(r"^\| `(fedcore[\w.]*)` \| (.*) \|$", re.M)


def public() -> str:
    """Return the names that ``import fedcore`` gives, functions and classes first."""
    shown = [name for name in fedcore.__all__ if not name.startswith("_")]
    return "\n\n".join(
        f"## `{name}`\n\n{_place(name)}\n\n{_documented('fedcore', name)}" for name in shown
    )


def _place(name: str) -> str:
    """Return a place with the name in the module of its code, to which pages of code lead back."""
    return f'<span id="{getattr(fedcore, name).__module__}.{name}"></span>'


def developers() -> str:
    """Return the names that docs/adding.md lists for authors of other packages."""
    rows = ROW.findall(ADDING.read_text(encoding="utf-8"))
    parts = []
    for module, listed in rows:
        if module == "fedcore":
            continue
        found = re.findall(r"`(\w+)`", listed)
        parts.append(f"## `{module}`\n\n" + "\n\n".join(_documented(module, n) for n in found))
    return "\n\n".join(parts)


def algorithms() -> str:
    """Return a section per algorithm: its docstring, and its parameters as a table."""
    return "\n\n".join(_algorithm(name) for name in names() if _own(name))


def _own(name: str) -> bool:
    """Whether an algorithm is fedcore's; the site of this project leaves others out."""
    return registry.REGISTRY.module_name(name).startswith("fedcore.algorithms.")


def _default(parameter: Description) -> str:
    if parameter.required:
        return "required"
    value = parameter.default
    return f"default {value if isinstance(value, str) else json.dumps(value)}"


def _algorithm(name: str) -> str:
    algorithm = get(name)
    defaults = {k: f"default {v:g}" for k, v in with_tolerance(algorithm, {}).items()}
    rows = [
        f"| `{p.name}` | {_cell(p.sentence)} | {_cell(p.kind)} | "
        f"{defaults.get(p.name, _default(p))} |"
        for p in describe(algorithm.parameters)
    ]
    table = ["| parameter | meaning | range | default |", "| :-- | :-- | :-- | :-- |", *rows]
    file = f"../fedcore/algorithms/{name}.py"
    return "\n\n".join(
        [
            f"## `{name}`",
            _rst(f".. automodule:: {algorithm.module.__name__}\n   :no-members:"),
            f"{algorithm.citation}.",
            f"```bibtex\n{bibtex(name)}```",
            "\n".join(table),
            f"Of the paper `{algorithm.paper}`. [Its file]({file}).",
        ]
    )


def metrics() -> str:
    """Return a table of all metrics."""
    known, _ = families()
    rows = sorted(
        f"| `{m.name}` | {_cell(m.description)} | {'' if m.units == '1' else m.units} |"
        for family in known.values()
        for m in family
    )
    return "\n".join(["| metric | meaning | units |", "| :-- | :-- | :-- |", *rows])


def _documented(module: str, name: str) -> str:
    value = getattr(__import__(module, fromlist=[name]), name)
    kind = "autoclass" if isinstance(value, type) else "autofunction"
    kind = kind if callable(value) else "autodata"
    text = f".. {kind}:: {module}.{name}"
    if kind == "autoclass" and not issubclass(value, BaseException):
        if any(base.__module__.startswith("fedcore.") for base in value.__mro__[1:]):
            text += "\n   :inherited-members: object"
    return _rst(text)


def _rst(text: str) -> str:
    return f"```{{eval-rst}}\n{text}\n```"


def _cell(text: str) -> str:
    return re.sub(r"`+([^`]*)`+", r"`\1`", text).replace("|", "\\|")

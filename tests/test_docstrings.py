"""Defaults that docstrings state are those of the code."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import fedcore

STATED = re.compile(r"^ *(\w[\w, ]*) : .*default=(.+)$", re.M)
ADDING = Path(__file__).parents[1] / "docs" / "adding.md"


def stating():
    """Yield everything of fedcore whose docstring states a default, once."""
    for info in pkgutil.walk_packages(fedcore.__path__, "fedcore."):
        if info.name == "fedcore.__main__":
            continue
        try:
            module = importlib.import_module(info.name)
        except ModuleNotFoundError as error:  # of an extra that is not installed
            assert error.name == "torch"
            continue
        found = [value for value in vars(module).values() if callable(value)]
        found += [m for owner in found if inspect.isclass(owner) for m in vars(owner).values()]
        for value in found:
            if getattr(value, "__module__", "") == info.name and STATED.search(value.__doc__ or ""):
                yield pytest.param(value, id=f"{info.name}.{value.__qualname__}")


@pytest.mark.parametrize("owner", list(stating()))
def test_a_default_in_a_docstring_is_that_of_the_signature(owner):
    parameters = inspect.signature(owner).parameters
    for names, default in STATED.findall(owner.__doc__):
        for name in names.split(", "):
            assert parameters[name].default == ast.literal_eval(default), name


def test_docstrings_with_defaults_are_found():
    assert {parameter.values[0] for parameter in stating()} >= {fedcore.run, fedcore.FederatedPCA}


def public():
    """Yield the dotted name of each function and public method that another package may use."""
    page = ADDING.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(fedcore[\w.]*)` \| (.*) \|$", page, re.M)
    names = {(module, name) for module, listed in rows for name in re.findall(r"`(\w+)`", listed)}
    for module, name in sorted(names | {("fedcore", name) for name in fedcore.__all__}):
        found = getattr(importlib.import_module(module), name)
        if inspect.isroutine(found):
            yield f"{module}.{name}"
        if inspect.isclass(found):
            fields = getattr(found, "__dataclass_fields__", {})  # a default may be a function
            for method, value in inspect.getmembers(found, inspect.isroutine):
                ours = getattr(value, "__module__", None) or ""
                if not method.startswith("_") and method not in fields and "fedcore" in ours:
                    yield f"{module}.{name}.{method}"


def test_public_functions_and_methods_document_their_parameters():
    validate = pytest.importorskip("numpydoc.validate").validate
    names = [*public()]
    assert {"fedcore.run", "fedcore.History.load", "fedcore.linalg.haar"} <= {*names}
    errors = [(name, *error) for name in names for error in validate(name)["errors"]]
    assert not [error for error in errors if error[1] == "PR01"]

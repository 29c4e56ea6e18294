"""Defaults that docstrings state are those of the code."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re

import pytest

import fedcore

STATED = re.compile(r"^ *(\w[\w, ]*) : .*default=(.+)$", re.M)


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

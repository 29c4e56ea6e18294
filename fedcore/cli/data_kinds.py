"""Commands that list what makes clients: models of synthetic data, and partitions of samples."""

# ruff: noqa: D301  (click wants a real backspace before lines that it must not wrap)

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import Any

import click

from fedcore.cli.lookup import warn
from fedcore.cli.output import as_json, emit
from fedcore.errors import InputError

OF_DATA = ("n", "labels", "identities", "rng")  # what a partitioner gets from the data


@click.command()
@as_json
def generators(as_json: bool) -> None:
    """List the models of synthetic data with their parameters, for the files of papers.

    \b
    Example:
      fedcore generators
    """
    from fedcore.generators import REGISTRY, names

    found, broken = [], []
    for name in names():
        try:
            module = REGISTRY.module(name)
            # The first parameter is the random generator, whatever the model calls it.
            generator = list(inspect.signature(module.generate).parameters)[:1]
            found.append(_described(name, module.generate, generator, _title(module)))
        except (AttributeError, TypeError):
            broken.append(f"generator '{name}' has no function generate")
        except InputError as error:  # another package's
            broken.append(" ".join(str(error).split()))
    emit(found, lambda: _text(found), as_json)
    warn(broken)


@click.command()
@as_json
def partitions(as_json: bool) -> None:
    """List how samples can be dealt to clients, for --partition and the files of papers.

    \b
    Example:
      fedcore partitions
    """
    from fedcore.datasets.partition import PARTITIONERS

    found = [
        _described(name, function, OF_DATA, _title(function))
        for name, function in PARTITIONERS.items()
    ]
    emit(found, lambda: _text(found), as_json)


def _described(
    name: str, function: Callable[..., Any], given: Collection[str], title: str
) -> dict[str, Any]:
    """Return a function's title and its parameters but the given ones, with their defaults."""
    known = inspect.signature(function).parameters.items()
    parameters = {
        parameter: "required" if p.default is p.empty else repr(p.default)
        for parameter, p in known
        if parameter not in given
    }
    return {"name": name, "title": title, "parameters": parameters}


def _title(thing: object) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def _text(found: list[dict[str, Any]]) -> str:
    lines = []
    for one in found:
        parameters = ", ".join(
            name if default == "required" else f"{name}={default}"
            for name, default in one["parameters"].items()
        )
        lines.append(f"{one['name']}: {one['title']}\n    {parameters or 'no parameters'}")
    return "\n".join(lines)

"""Commands that look up what there is: algorithms, metrics, data sets, clients; and `fetch`."""

# ruff: noqa: D301  (click wants a real backspace before lines that it must not wrap)

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import click

from fedcore.cli import options
from fedcore.cli.output import as_json, emit, say
from fedcore.errors import ConfigError, FedcoreError, InputError

if TYPE_CHECKING:
    from fedcore.algorithms import Algorithm


def warn(sentences: list[str]) -> None:
    """Say on standard error what is broken, mostly of another package."""
    for sentence in sentences:
        say(f"Warning: {sentence}", err=True)


@click.command()
@click.argument("name", required=False)
@as_json
def algorithms(name: str | None, as_json: bool) -> None:
    """List the algorithms, or describe one and its parameters.

    \b
    Examples:
      fedcore algorithms
      fedcore algorithms block_krylov
    """
    from fedcore.algorithms import get, names
    from fedcore.reports.terminal import columns

    if name is None:
        rows = [_row(known) for known in names()]
        fields = ("name", "paper", "title")
        listed = [dict(zip(fields, row, strict=True)) for row in rows]
        emit(listed, lambda: columns(rows), as_json)
        warn([f"{title} (fedcore doctor)" for _, paper, title in rows if paper == "broken"])
        return
    algorithm = get(name)
    described = _described(algorithm)
    emit(described, lambda: _text(algorithm, described), as_json)


def _row(name: str) -> tuple[str, str, str]:
    from fedcore.algorithms import get

    try:
        algorithm = get(name)
        return name, algorithm.paper, algorithm.title
    except FedcoreError as error:  # a missing extra, or another package's error
        return name, "broken", " ".join(str(error).split())


def _described(algorithm: Algorithm) -> dict[str, Any]:
    """Return what an algorithm is, and meaning, range and default of its parameters."""
    from fedcore.parts.convergence_test import with_tolerance
    from fedcore.parts.params import describe

    of_a_run = with_tolerance(algorithm, {})
    return {
        "name": algorithm.name,
        "paper": algorithm.paper,
        "title": algorithm.title,
        "citation": algorithm.citation,
        "labelled": algorithm.labelled,
        "parameters": [
            {"name": known.name, "meaning": known.sentence, "range": known.kind,
             "required": known.required and known.name not in of_a_run,
             "default": of_a_run.get(known.name, known.default)}
            for known in describe(algorithm.parameters)
            if known.name != "start"
        ],
        **({"networks": _networks()} if "model" in algorithm.task.fields else {}),
    }  # fmt: skip


def _networks() -> list[dict[str, str]]:
    """Return what each network takes: numbers of a sample, and its classes."""
    from fedcore.deep.models import MODELS

    return [
        {
            "name": name,
            "sample": " × ".join("any number" if side < 0 else str(side) for side in model.sample),
            "classes": f"0 to {model.classes - 1}",
        }
        for name, model in sorted(MODELS.items())
    ]


def _spelled(parameter: dict[str, Any]) -> str:
    value = parameter["default"]
    if parameter["required"]:
        return "required"
    return f"default {value if isinstance(value, str) else json.dumps(value)}"


def _text(algorithm: Algorithm, described: dict[str, Any]) -> str:
    text = click.HelpFormatter()
    text.write(f"{algorithm.name}, of the paper '{algorithm.paper}'\n\n")
    text.write(f"{algorithm.documentation}\n")
    if algorithm.citation:
        text.write("\n")
        text.write_text(f"{algorithm.citation}.")
    with text.section("Parameters, with --set NAME=VALUE (n_components is --components)"):
        text.write_dl(
            (p["name"], f"{p['meaning']} [{p['range']}; {_spelled(p)}]".lstrip())
            for p in described["parameters"]
        )
    if networks := described.get("networks"):
        text.write("\n")
        with text.section("Networks, with --set model=NAME: numbers of a sample, and classes"):
            text.write_dl((n["name"], f"{n['sample']}; {n['classes']}") for n in networks)
    return text.getvalue().rstrip("\n")


@click.command()
@click.argument("method")
def cite(method: str) -> None:
    """Print BibTeX of what to cite for METHOD, a name that `fedcore algorithms` lists.

    \b
    Example:
      fedcore cite faps >> references.bib
    """
    from fedcore.reports.references import bibtex

    say(bibtex(method))


@click.command()
@as_json
def metrics(as_json: bool) -> None:
    """List the metrics that a run can record, with their units.

    \b
    Example:
      fedcore metrics
    """
    from fedcore.metrics import families
    from fedcore.reports.terminal import columns

    known, broken = families()
    listed = [
        {"name": m.name, "units": m.units, "description": m.description, "family": family}
        for family, found in known.items()
        for m in found
    ]
    rows = [(m["name"], m["units"] * (m["units"] != "1"), m["description"]) for m in listed]
    emit(listed, lambda: columns(sorted(rows)), as_json)
    warn(broken)


@click.command()
@options.raw
@as_json
def datasets(raw: str, as_json: bool) -> None:
    """List the data sets: which can be fetched, and what must be provided by hand.

    \b
    Example:
      fedcore datasets
    """
    from fedcore import datasets as data_sets
    from fedcore.datasets.registry import find, loader_of
    from fedcore.reports.terminal import columns

    listed, broken = [], []
    for name in data_sets.names():
        plugin, to_do = find(name)[1], data_sets.missing(name, raw)
        state = "to be provided" if to_do else "obtainable"
        try:
            if plugin is not None:
                loader_of(plugin)
        except ConfigError as error:
            state = "broken"
            broken.append(f"{error} (fedcore doctor)")
        title = data_sets.describe(name)["title"]
        listed.append({"name": name, "state": state, "title": title, "to_do": to_do})
    rows = [(one["name"], one["state"], one["title"]) for one in listed]
    lines = [columns(rows), *(f"\n{one['to_do']}" for one in listed if one["to_do"])]
    emit(listed, lambda: "\n".join(lines), as_json)
    warn(broken)


@click.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@options.raw
@click.option("--mirror", help="Folder with one subfolder per data set.  [default: FEDCORE_MIRROR]")
def fetch(names: tuple[str, ...], raw: str, mirror: str | None) -> None:
    """Fetch data sets and check them against the registry.

    \b
    Example:
      fedcore fetch mnist w8a
    """
    from fedcore import datasets as data_sets

    options.require_raw(raw)
    for name in names:
        data_sets.describe(name)  # a misspelt name is refused before anything is fetched
    for name in names:
        for path in data_sets.fetch(name, raw, mirror=mirror):
            say(path)


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
            found.append(_described_kind(name, module.generate, generator, _title(module)))
        except (AttributeError, TypeError):
            broken.append(f"generator '{name}' has no function generate")
        except InputError as error:  # another package's
            broken.append(" ".join(str(error).split()))
    emit(found, lambda: _kinds_text(found), as_json)
    warn(broken)


@click.command()
@as_json
def partitions(as_json: bool) -> None:
    """List how samples can be dealt to clients, for --partition and the files of papers.

    \b
    Example:
      fedcore partitions
    """
    from fedcore.datasets.partition import OF_DATA, PARTITIONERS

    found = [
        _described_kind(name, function, OF_DATA, _title(function))
        for name, function in PARTITIONERS.items()
    ]
    emit(found, lambda: _kinds_text(found), as_json)


def _described_kind(
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


def _kinds_text(found: list[dict[str, Any]]) -> str:
    lines = []
    for one in found:
        parameters = ", ".join(
            name if default == "required" else f"{name}={default}"
            for name, default in one["parameters"].items()
        )
        lines.append(f"{one['name']}: {one['title']}\n    {parameters or 'no parameters'}")
    return "\n".join(lines)

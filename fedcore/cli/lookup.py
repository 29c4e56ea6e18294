"""The commands `list` (methods and data), `cite` (BibTeX) and `fetch` (download data sets)."""

# ruff: noqa: D301  (click wants a real backspace before lines that it must not wrap)

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Collection, Iterable
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import click

from fedcore.cli import options
from fedcore.cli.output import as_json, emit, say
from fedcore.errors import FedcoreError, InputError, require_known

if TYPE_CHECKING:
    from fedcore.algorithms import Algorithm

# Descriptions of all methods, data sets or the like; each has the key ``name``.
Found = list[dict[str, Any]]
# Descriptions, one message for each name that cannot be used, and a function that writes text.
Listing = tuple[Found, list[str], Callable[[Found], str]]


def _each(
    names: Iterable[str], describe: Callable[[str], dict[str, Any]]
) -> tuple[Found, list[str]]:
    """Return a description of each usable name, and an error message for each other name."""
    found, broken = [], []
    for name in names:
        try:
            found.append({"name": name, **describe(name)})
        except FedcoreError as error:  # a missing extra, or another package's error
            broken.append(f"{' '.join(str(error).split())} (fedcore doctor)")
    return found, broken


def _table(found: Found, *fields: str) -> str:
    from fedcore.reports.terminal import columns

    return columns([[one[field] for field in fields] for one in found])


def _methods(raw: str) -> Listing:
    from fedcore.algorithms import get, names

    def describe(name: str) -> dict[str, Any]:
        algorithm = get(name)
        task = type(algorithm.task).__name__.lower()
        return {"paper": algorithm.paper, "title": algorithm.title, "task": task}

    return *_each(names(), describe), _by_task


def _by_task(found: Found) -> str:
    tasks: dict[str, list[str]] = {}
    for one, line in zip(found, _table(found, "name", "paper", "title").split("\n"), strict=True):
        tasks.setdefault(one["task"], [f"{one['task']}:"]).append(f"  {line}")
    return "\n\n".join("\n".join(lines) for lines in tasks.values())


def _described(algorithm: Algorithm) -> dict[str, Any]:
    """Return an algorithm's description, with meaning, range and default of each parameter."""
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
    """Return each network's name, the shape of its samples, and the range of its class numbers."""
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


def _metrics(raw: str) -> Listing:
    from fedcore.metrics import families

    def text(found: Found) -> str:
        return _table(sorted(found, key=itemgetter("name")), "name", "units", "description")

    known, broken = families()
    found = [
        {"name": m.name, "units": m.units, "description": m.description, "family": family}
        for family, metrics in known.items()
        for m in metrics
    ]
    return found, broken, text


def _datasets(raw: str) -> Listing:
    from fedcore import datasets as data_sets
    from fedcore.datasets.registry import find, loader_of

    def describe(name: str) -> dict[str, Any]:
        plugin = find(name)[1]
        if plugin is not None:
            loader_of(plugin)
        to_do = data_sets.missing(name, raw)
        state = "to be provided" if to_do else "obtainable"
        return {"state": state, "title": data_sets.describe(name)["title"], "to_do": to_do}

    def text(found: Found) -> str:
        to_do = [f"\n{one['to_do']}" for one in found if one["to_do"]]
        return "\n".join([_table(found, "name", "state", "title"), *to_do])

    return *_each(data_sets.names(), describe), text


def _generators(raw: str) -> Listing:
    from fedcore.generators import REGISTRY, names

    def describe(name: str) -> dict[str, Any]:
        module = REGISTRY.module(name)
        generate = getattr(module, "generate", None)
        if not callable(generate):
            raise InputError(f"generator '{name}' has no function generate")
        # The first parameter is the random generator, whatever the model calls it.
        given = list(inspect.signature(generate).parameters)[:1]
        return _parameters(generate, given, module)

    return *_each(names(), describe), _with_parameters


def _partitions(raw: str) -> Listing:
    from fedcore.datasets.partition import OF_DATA, PARTITIONERS

    def describe(name: str) -> dict[str, Any]:
        return _parameters(PARTITIONERS[name], OF_DATA, PARTITIONERS[name])

    return *_each(PARTITIONERS, describe), _with_parameters


def _parameters(function: Callable[..., Any], given: Collection[str], what: Any) -> dict[str, Any]:
    """Return the first docstring line of `what`, and the parameters of `function`.

    Parameters in `given` are left out. Each other parameter is listed with its default, or with
    the word ``required``.
    """
    title = (inspect.getdoc(what) or "").partition("\n")[0]
    parameters = {
        name: "required" if p.default is p.empty else repr(p.default)
        for name, p in inspect.signature(function).parameters.items()
        if name not in given
    }
    return {"title": title, "parameters": parameters}


def _with_parameters(found: Found) -> str:
    lines = []
    for one in found:
        parameters = ", ".join(
            name if default == "required" else f"{name}={default}"
            for name, default in one["parameters"].items()
        )
        lines.append(f"{one['name']}: {one['title']}\n    {parameters or 'no parameters'}")
    return "\n".join(lines)


KINDS = {
    "methods": _methods, "metrics": _metrics, "datasets": _datasets, "generators": _generators,
    "partitions": _partitions,
}  # fmt: skip


@click.command("list")
@click.argument("kind", type=click.Choice(list(KINDS)))
@click.argument("name", required=False)
@options.raw
@as_json
def listing(kind: str, name: str | None, raw: str, as_json: bool) -> None:
    """List all methods, metrics, data sets, generators or partitions; or describe NAME.

    The description of a method lists the parameters that --set can change. Metrics are the
    quantities that --metric can record. The list of data sets says which ones can be downloaded.
    Partitions (--partition) distribute samples among clients. Generators draw the synthetic data
    that the reproduced papers use.

    \b
    Examples:
      fedcore list methods
      fedcore list methods block_krylov
      fedcore list datasets
    """
    if kind == "methods" and name is not None:
        from fedcore.algorithms import get

        algorithm = get(name)
        described = _described(algorithm)
        emit(described, lambda: _text(algorithm, described), as_json)
        return
    found, broken, text = KINDS[kind](raw)
    if name is not None:
        require_known(name, [one["name"] for one in found], f"no {kind} called")
        found = [one for one in found if one["name"] == name]
    emit(found, lambda: text(found), as_json)
    for sentence in broken:
        say(f"Warning: {sentence}", err=True)


def _alias(old: str, kind: str) -> click.Command:
    """Return a hidden command `old` that runs ``list KIND``; the next release removes `old`."""
    params = [parameter for parameter in listing.params if parameter.name != "kind"]

    def run(**given: Any) -> None:
        click.get_current_context().invoke(listing, kind=kind, **given)

    return click.Command(old, hidden=True, params=params, callback=run)


ALIASES = [_alias("algorithms" if kind == "methods" else kind, kind) for kind in KINDS]


@click.command()
@click.argument("method")
def cite(method: str) -> None:
    """Print the BibTeX entries to cite for METHOD, a name from `fedcore list methods`.

    \b
    Example:
      fedcore cite faps >> references.bib
    """
    from fedcore.reports.references import bibtex

    say(bibtex(method))


@click.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@options.raw
@click.option("--mirror", help="Folder to copy files from, with one subfolder per data set.  "
              "[default: $FEDCORE_MIRROR]")  # fmt: skip
def fetch(names: tuple[str, ...], raw: str, mirror: str | None) -> None:
    """Download data sets and verify their checksums.

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

"""Options that several commands share, and functions that parse option values."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from fedcore.errors import ConfigError, InputError, nearest
from fedcore.files import HDF5_ENDINGS
from fedcore.reports import stem

RAW = "data/raw"
DEFAULT_CLIENTS = 10
COUNT = click.IntRange(min=1)
THREADS = click.IntRange(1, 1024)  # BLAS and PyTorch start as many as they are told

raw = click.option("--raw", default=RAW, show_default=True, help="Folder of the raw data files.")
force = click.option(
    "--force",
    is_flag=True,
    help="Also replace files that fedcore has not written, but never an input.",
)


def parameters(settings: Sequence[str], algorithms: Sequence[str] = ()) -> dict[str, dict]:
    """Return the --set values of each algorithm; the key "" has the values for all algorithms.

    ``NAME=VALUE`` sets a parameter of every algorithm, and ``ALGORITHM.NAME=VALUE`` sets a
    parameter of one algorithm.
    """
    found: dict[str, dict[str, Any]] = {name: {} for name in ("", *algorithms)}
    for text in settings:
        left, equals, value = text.partition("=")
        whose, _, name = left.rpartition(".")
        if equals and algorithms and whose not in found:
            raise click.BadParameter(
                f"'{whose}' of '{text}' is not one of the algorithms: {nearest(whose, algorithms)}",
                param_hint="--set",
            )
        if not equals or not name or whose not in found:
            raise click.BadParameter(f"'{text}' is not NAME=VALUE", param_hint="--set")
        if name == "n_components":
            raise click.BadParameter("give n_components as --components", param_hint="--set")
        if name == "start":
            raise InputError("--set cannot set a starting basis: pass it to fedcore.run in Python")
        found[whose][name] = parsed(value)
    return found


def partition(text: str | None, clients: int | None) -> dict[str, Any]:
    """Return the keys and values of ``by=KIND,KEY=VALUE,…``, with the number of clients added.

    Commas inside square brackets do not separate pairs.
    """
    parts: dict[str, Any] = {}
    for pair in re.split(r",(?![^\[]*\])", text) if text else []:
        key, equals, value = pair.strip().partition("=")
        if not equals or key in parts:
            wrong = "is not KEY=VALUE" if not equals else f"gives the key {key} a second time"
            raise click.BadParameter(f"'{pair}' {wrong}", param_hint="--partition")
        parts[key] = parsed(value)
    if clients is not None and "clients" in parts:
        raise click.BadParameter(
            "the number of clients is given twice: drop 'clients' here, or drop --clients",
            param_hint="--partition",
        )
    found = {"by": "shuffled"} | parts
    if clients is None and "clients" not in parts and _needs_clients(found["by"]):
        clients = DEFAULT_CLIENTS
    return found if clients is None else found | {"clients": clients}


def _needs_clients(kind: Any) -> bool:
    """Return whether a kind of partition has a parameter ``clients`` without a default."""
    from fedcore.datasets.partition import PARTITIONERS

    if not isinstance(kind, str) or kind not in PARTITIONERS:
        return False
    clients = inspect.signature(PARTITIONERS[kind]).parameters.get("clients")
    return clients is not None and clients.default is inspect.Parameter.empty


def share(text: str) -> Any:
    """Parse the value of --held-out, which is "test" or a share between 0 and 1."""
    value = parsed(text)
    if value != "test" and not (isinstance(value, float) and 0 < value < 1):
        raise click.BadParameter(
            f"'{text}' is neither test nor a share between 0 and 1", param_hint="--held-out"
        )
    return value


def require_folder(option: str, path: str | None) -> None:
    """Raise `InputError` if the folder of an output path does not exist; None means no output."""
    if path is not None and not Path(path).parent.is_dir():
        raise InputError(f"{option} {path}: there is no folder {Path(path).parent}: make it first")


def figure(ctx: click.Context, param: click.Parameter, path: str | None) -> str | None:
    """Return a figure's path; raise BadParameter if it names no file or another image format."""
    try:
        if path is not None:
            stem(path)
    except InputError as error:
        raise click.BadParameter(str(error), ctx, param) from error
    return path


def require_output(
    option: str, path: str | None, kind: str, inputs: Sequence[str] = (), force: bool = False
) -> None:
    """Raise `InputError` if an output path may not be written; None means that there is no output.

    `kind` is "history", "folder" (of histories) or "figure" (written to PATH.png and PATH.pdf). An
    output never replaces an input. Without `force`, an output does not replace a file that fedcore
    has not written; see `fedcore.files.outputs.require`.
    """
    from fedcore.files import outputs

    if path is None:
        return
    of_history = Path(path).suffix in HDF5_ENDINGS
    if kind == "history" and not of_history:
        raise InputError(f"{option} {path}: a history is an HDF5 file: let its name end in .h5")
    if kind == "folder" and of_history:
        raise InputError(f"{option} {path}: compare writes several histories: give a folder")
    require_folder(option, path)
    files = [path] if kind == "history" else []
    if kind == "figure":
        files = [f"{stem(path)}.png", f"{stem(path)}.pdf"]
    for file in files:
        outputs.require(file, kind, inputs=inputs, force=force)


def require_raw(folder: str) -> None:
    """Raise `InputError` if a --raw folder other than the default has no parent folder."""
    if folder != RAW:
        require_folder("--raw", folder)


def parsed(text: str) -> Any:
    """Return a value read as YAML; also read numbers such as 1e-6, which YAML takes for strings."""
    from fedcore.files.strict_yaml import parse_yaml

    try:
        value = parse_yaml(text, "a value")
    except ConfigError:
        return text
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value

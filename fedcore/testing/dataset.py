"""All checks of one data set."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from fedcore import datasets
from fedcore.datasets import partition, registry
from fedcore.datasets.reading import Dataset
from fedcore.errors import InputError
from fedcore.problems import STATUSES
from fedcore.problems.clients import check_clients
from fedcore.testing.asserting import require
from fedcore.testing.report import Report, Skipped, examine, file_of
from fedcore.words import counted


@dataclass(frozen=True)
class Subject:
    """A data set under check: ``load(split=…, surrogate=…)`` makes it."""

    load: Callable[..., Dataset]
    surrogate: bool
    options: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def data(self) -> Dataset:
        """Its training samples."""
        return self.again()

    def again(self, **changes: Any) -> Dataset:
        """Load it once more, with changed options."""
        options = {**self.options, **changes}
        return self.load(split="train", surrogate=self.surrogate, options=options)


def is_a_dataset(subject: Subject) -> None:
    """It returns a Dataset."""
    made = subject.data
    require(isinstance(made, Dataset), f"it returns a {type(made).__name__}")


def has_samples(subject: Subject) -> None:
    """Its samples are a finite, C-contiguous matrix of numbers."""
    x = subject.data.x
    require(
        isinstance(x, np.ndarray) and x.ndim == 2, f"x is no matrix, but of shape {np.shape(x)}"
    )
    require(x.size, f"x is empty, of shape {x.shape}")
    require(x.dtype.kind in "biuf", f"x holds {x.dtype}, no numbers")
    require(np.isfinite(x).all(), "x has NaN or infinity")
    require(x.flags.c_contiguous, "x is not C-contiguous: return np.ascontiguousarray(x)")


def has_labels_that_fit(subject: Subject) -> None:
    """Labels and owners, if there are any, are one whole number a sample."""
    for name in ("y", "owners"):
        values = getattr(subject.data, name)
        if values is None:
            continue
        shape = (len(subject.data.x),)
        require(np.shape(values) == shape, f"{name} has shape {np.shape(values)}, not {shape}")
        require(values.dtype.kind in "iu", f"{name} holds {values.dtype}, no whole numbers")


def says_where_it_comes_from(subject: Subject) -> None:
    """Name, status, note and checksum are there."""
    data = subject.data
    require(isinstance(data.name, str) and data.name, "it has no name")
    require(data.status in STATUSES, f"status '{data.status}' is none of {', '.join(STATUSES)}")
    require(
        not subject.surrogate or data.status == "surrogate",
        f"asked for its stand-in, it says status '{data.status}': make it 'surrogate'",
    )
    require(isinstance(data.note, str) and data.note, "it has no note for readers of a result")
    sum_ = isinstance(data.checksum, str) and re.fullmatch("[0-9a-f]{64}", data.checksum)
    require(sum_, "its checksum is no sha256 in 64 hexadecimal digits")


def loads_the_same_again(subject: Subject) -> None:
    """Loaded again, it is the same to the byte."""
    first, again = subject.data, subject.again()
    for name in ("x", "y", "owners"):
        one, other = getattr(first, name), getattr(again, name)
        same = (one is None) == (other is None) and (one is None or np.array_equal(one, other))
        require(same, f"{name} differs: draw from a generator with a fixed seed")
    require(first.checksum == again.checksum, "its checksum differs")


def keeps_its_arrays_to_itself(subject: Subject) -> None:
    """What a user writes into its arrays is not in the next that is loaded."""
    first = subject.again()
    if not first.x.flags.writeable:
        return
    before = first.x.copy()
    first.x[:] = 0
    require(np.array_equal(subject.again().x, before), "two loads share one array: return a copy")


def takes_fewer_samples(subject: Subject) -> None:
    """The option `samples` keeps the first so many, or is refused in a sentence."""
    try:
        few = subject.again(samples=2)
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, InputError | ValueError) and str(error):
            raise Skipped(f"it takes no option 'samples': {error}") from None
        raise
    if len(few.x) == len(subject.data.x) > 2:
        raise Skipped("it ignores the option 'samples'")
    require(len(few.x) == 2, f"with samples = 2 it has {counted(len(few.x), 'row')}")


def splits_among_clients(subject: Subject) -> None:
    """It can be dealt to clients."""
    n = len(subject.data.x)
    rng = np.random.default_rng(0)
    parts = partition.split({"by": "shuffled", "clients": min(2, n)}, n, None, rng)
    check_clients([subject.data.x[part] for part in parts])


CHECKS: dict[str, Callable[[Subject], None]] = {
    check.__name__: check
    for check in (
        is_a_dataset, has_samples, has_labels_that_fit, says_where_it_comes_from,
        loads_the_same_again, keeps_its_arrays_to_itself, takes_fewer_samples, splits_among_clients,
    )
}  # fmt: skip


def check_dataset(
    dataset: str | Callable[..., Dataset],
    raw_dir: str = "data/raw",
    *,
    surrogate: bool = False,
    options: Mapping[str, Any] | None = None,
    raising: bool = True,
) -> Report:
    """Check that a data set is what problems are made of.

    Parameters
    ----------
    dataset : str or callable
        Name of a data set, ``module:function``, or the function itself:
        ``(raw_dir, *, split, surrogate, options) -> Dataset``. It need not be registered.
    raw_dir : str
        Folder of the raw files.
    surrogate : bool, default=False
        Check the offline stand-in.
    options : mapping, optional
        Options of the data set, for every load.
    raising : bool, default=True
        Whether to raise when a check fails.

    Returns
    -------
    Report

    Raises
    ------
    CheckFailed
        An AssertionError that names every check that has failed.
    ConfigError, InputError
        When there is no such data set, it cannot be imported, or it takes other arguments.
    """
    subject = Subject(_loader(dataset, raw_dir), surrogate, dict(options or {}))
    name = dataset if isinstance(dataset, str) else getattr(dataset, "__name__", "of a function")
    function = getattr(subject.load, "func", subject.load)
    if function is not datasets.load:
        _require_signature(function, name)
    report = examine(f"data set {name}", CHECKS, subject, file_of(function))
    if raising:
        report.require()
    return report


def _require_signature(function: Callable[..., Dataset], name: str) -> None:
    """Refuse what cannot be called as a data set of another package is, such as a `loader`."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some callables have none that Python can tell
        return
    try:
        signature.bind("data/raw", split="train", surrogate=False, options={})
    except TypeError as error:
        raise InputError(
            f"{name}{signature} is no data set of another package ({error}): such a one is called "
            "as (raw_dir, *, split, surrogate, options), and returns a Dataset of "
            "fedcore.datasets.reading"
        ) from error


def _loader(dataset: str | Callable[..., Dataset], raw_dir: str) -> Callable[..., Dataset]:
    if not isinstance(dataset, str):
        return partial(dataset, raw_dir)
    if ":" not in dataset:
        registry.find(dataset)
        return partial(datasets.load, dataset, raw_dir)
    module, _, name = dataset.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:
        raise InputError(
            f"{dataset} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not callable(function):
        raise InputError(f"{dataset} is no function")
    return partial(function, raw_dir)

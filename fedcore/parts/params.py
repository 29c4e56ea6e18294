"""Base classes of algorithms' hyper-parameters, and a function that describes these in words."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fedcore.validation import Count, Rule, check_annotated, declared


@dataclass(frozen=True)
class Checked:
    """Base class of all hyper-parameters, which checks every field against its annotation.

    `fedcore.validation.check_annotated` makes this check. To check relations between fields as
    well, a subclass defines a ``__post_init__`` that first calls ``super().__post_init__()``.

    Raises
    ------
    InputError
        Raised if a value is out of the range of its field.
    """

    def __post_init__(self) -> None:
        check_annotated(type(self), vars(self))


@dataclass(frozen=True)
class Parameters(Checked):
    """Base class of the ``Params`` of algorithms that learn a subspace.

    Attributes
    ----------
    n_components : int
        Number of columns of the basis or factor.
    start : ndarray of shape (n_features, n_components), optional
        Starting basis, which the method orthonormalises first. By default, the starting basis is
        random.
    """

    n_components: Count
    start: np.ndarray | None = dataclasses.field(default=None, kw_only=True)

    def columns(self, n_features: int) -> int:
        """Return the number of columns of the matrix that the method iterates.

        Parameters
        ----------
        n_features : int
            Number of features, which limits the number of columns of some methods.
        """
        return self.n_components


class Description(NamedTuple):
    """Description of a hyper-parameter, a field of a ``Params``.

    Attributes
    ----------
    name : str
    sentence : str
        The text that the docstring of the ``Params`` gives for the hyper-parameter, or an empty
        string.
    kind : str
        The valid values in words, or the type if the field has no rule for valid values.
    required : bool
        True if the hyper-parameter has no default.
    default : object
        The default as a JSON value, or None if there is no default.
    """

    name: str
    sentence: str
    kind: str
    required: bool
    default: Any


def describe(params: type) -> list[Description]:
    """Return a description of every field of a ``Params`` class, in the order of definition."""
    said: dict[str, str] = {}
    for owner in reversed(params.__mro__):
        section = inspect.cleandoc(owner.__doc__ or "").partition("Attributes\n----------\n")[2]
        for names, text in re.findall(r"^(\w[\w, ]*) :.*\n((?: {4}.*\n?)+)", section, re.M):
            said |= dict.fromkeys(names.split(", "), " ".join(text.split()))
    plain = not issubclass(params, Checked)
    # Nothing checks a plain dataclass, whose annotations may be for type checkers alone.
    checks = {} if plain else declared(params)
    found = []
    for field in dataclasses.fields(params):
        rules, optional = checks.get(field.name, ((), False))
        written = (
            field.type if isinstance(field.type, str) else inspect.formatannotation(field.type)
        )
        words = " and ".join(rule.words for rule in rules if isinstance(rule, Rule)) or written
        kind = words + (", or null" if optional else "")
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        required = default is dataclasses.MISSING
        value = None if required else json.loads(json.dumps(default, default=repr))
        found.append(Description(field.name, said.get(field.name, ""), kind, required, value))
    return found

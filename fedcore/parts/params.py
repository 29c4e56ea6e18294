"""Base classes of hyper-parameters, and a description in words of the parameters of a subclass."""

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
    """Base of all hyper-parameters; checks every field against what its type declares.

    See `fedcore.validation.check_annotated`. A relation between two fields is checked in the
    ``__post_init__`` of the subclass, which first calls this class's ``__post_init__``.

    Raises
    ------
    InputError
        For a value out of the range of its field.
    """

    def __post_init__(self) -> None:
        check_annotated(type(self), vars(self))


@dataclass(frozen=True)
class Parameters(Checked):
    """Base of the ``Params`` of algorithms that learn a subspace.

    Attributes
    ----------
    n_components : int
        Columns of the basis or factor.
    start : ndarray of shape (n_features, n_components), optional
        Basis to start from, orthonormalised first; drawn at random when not given.
    """

    n_components: Count
    start: np.ndarray | None = dataclasses.field(default=None, kw_only=True)

    def columns(self, n_features: int) -> int:
        """Return the columns of a block that a method iterates.

        Parameters
        ----------
        n_features : int
        """
        return self.n_components


class Description(NamedTuple):
    """A field of a ``Params`` in words.

    Attributes
    ----------
    name : str
    sentence : str
        The parameter's sentence in the docstring; empty when it has none.
    kind : str
        The allowed values: the words of the parameter's rule, or its type as written.
    required : bool
        Whether it has no default.
    default : object
        The default as a value of JSON; None also if the field has no default.
    """

    name: str
    sentence: str
    kind: str
    required: bool
    default: Any


def describe(params: type) -> list[Description]:
    """Describe every field of a dataclass of hyper-parameters, in order of definition."""
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

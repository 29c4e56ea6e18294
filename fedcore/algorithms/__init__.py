"""Registry of algorithms: one module, one algorithm, found by its file name.

To add one, drop a module into this package, or register one from another package under the entry
point group ``fedcore.algorithms``. A module holds

- a docstring with the citation and where the code departs from the paper (its first line is shown);
- ``PAPER``, short name of the paper it belongs to;
- ``Params``, a frozen dataclass of hyper-parameters with at least ``n_components`` and ``start``,
  such as a subclass of `fedcore.parts.params.Parameters`, which checks what its fields declare;
- ``run(federation, params, rng, record) -> dict`` of final arrays: ``V`` or ``basis`` of shape
  (n_features, n_components), and what else the method computes;
- ``communication(params, shape) -> Cost``, the closed form of what `run` costs when not stopped
early;
- ``COLUMNS``, if it counts something of its own: name -> (units, description); and ``RELEASED``,
  names of those that a private run releases, the others being exact functions of the data;
- ``LABELLED = True``, if it learns from labels: its steps get
  `fedcore.problems.clients.Labelled` data.

``record(iteration, **iterate)`` is called with ``basis=…`` or ``factors=…`` (and ``models=…``, the
coefficients of every client's regression as rows, where there are labels; and ``target=…``, the
number of leading directions that are wanted, if that is not the number of columns), and with
``counts={column: number, …}`` if there are COLUMNS, whenever there is a new iterate: with 0 before
the first round, and then in ``for k in record.rounds(most):``, a loop that ends with the run.

A private method has a parameter ``epsilon``, None for no privacy. It calls
``federation.protect(delta=…, neighbours=…)`` first, and adds its noise by ``state.privacy`` in its
client steps, which declare what they compute from releases by `derived` (see
`fedcore.privacy.mechanisms`); the ledger then has an ε.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from fedcore.errors import InputError
from fedcore.federation.ledger import Cost, Shape
from fedcore.plugins import Registry
from fedcore.validation import as_floats, check_names

REGISTRY = Registry(__name__, __path__, "algorithm")
names = REGISTRY.names
PARTS = ("PAPER", "Params", "run", "communication")  # without which a module is no algorithm
FIELDS = ("n_components", "start")  # that Params has at least


@dataclass(frozen=True)
class Algorithm:
    """A registered algorithm.

    Attributes
    ----------
    name : str
        Name in the registry and in configuration files.
    module : module
        Where it is written.
    """

    name: str
    module: ModuleType

    @property
    def paper(self) -> str:
        """Short name of the paper it comes from."""
        return self.module.PAPER

    @property
    def title(self) -> str:
        """First line of its documentation."""
        return (self.module.__doc__ or self.name).strip().splitlines()[0]

    @property
    def columns(self) -> Mapping[str, tuple[str, str]]:
        """Units and description of what it counts itself."""
        return getattr(self.module, "COLUMNS", {})

    @property
    def released(self) -> frozenset[str]:
        """Those of `columns` that a private run releases."""
        return frozenset(getattr(self.module, "RELEASED", ()))

    def private(self, params: Any) -> bool:
        """Whether a run with these parameters is private: it has an ε."""
        return getattr(params, "epsilon", None) is not None

    @property
    def labelled(self) -> bool:
        """Whether it learns from labels."""
        return getattr(self.module, "LABELLED", False)

    @property
    def run(self) -> Callable[..., dict[str, Any]]:
        """The algorithm itself: ``run(federation, params, rng, record)``."""
        return self.module.run

    def takes(self, name: str) -> bool:
        """Whether it has a parameter of this name."""
        return name in {field.name for field in dataclasses.fields(self.module.Params)}

    def params(self, values: Mapping[str, Any]) -> Any:
        """Build the algorithm's parameters, refusing unknown and missing names.

        Raises
        ------
        InputError
            For a name that the algorithm does not have, a required one that is missing, or a value
            out of range.
        """
        check_names(self.module.Params, values, self.name)
        if values.get("start") is not None:
            values = {**values, "start": as_floats(values["start"], "start")}
        return self.module.Params(**values)

    def communication(self, params: Any, shape: Shape) -> Cost:
        """Closed form of what a run costs."""
        return self.module.communication(params, shape)


def get(name: str) -> Algorithm:
    """Return the algorithm registered as `name`.

    Raises
    ------
    InputError
        When there is no such algorithm (the message suggests the nearest name), its module cannot
        be imported, or the module lacks a part, or its ``Params`` a field.
    """
    module = REGISTRY.module(name)
    lacking = [part for part in PARTS if not hasattr(module, part)]
    if lacking:
        raise InputError(
            f"algorithm '{name}': {module.__name__} has no {' and no '.join(lacking)}; "
            "fedcore.algorithms says what a module holds"
        )
    fields = getattr(module.Params, "__dataclass_fields__", {})
    missing = [field for field in FIELDS if field not in fields]
    if missing:
        raise InputError(
            f"algorithm '{name}': Params of {module.__name__} has no {' and no '.join(missing)}; "
            "it is a dataclass with at least these"
        )
    return Algorithm(name, module)

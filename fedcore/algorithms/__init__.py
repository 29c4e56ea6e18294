"""Registry of algorithms: one module, one algorithm, found by its file name.

To add one, drop a module into this package, or register one from another package under the entry
point group ``fedcore.algorithms``. A module holds

- a docstring with the citation and the departures from the paper; its first line is the title, and
  a line ``:look: blue, dashed`` says how figures draw it, see `fedcore.reports.curve_styles`;
- ``PAPER``, short name of the paper it belongs to;
- ``TASK``, what it learns: ``"subspace"``, which is also meant without it, or ``"classifiers"``;
- ``Params``, a frozen dataclass of hyper-parameters with at least the fields of its task, which for
  a subspace are ``n_components`` and ``start``. Subclasses of `fedcore.parts.params.Parameters`
  (for classifiers, of `fedcore.deep.settings.Params`) have them, and check every field;
- ``run(federation, params, rng, record) -> dict`` of final arrays: for a subspace ``V`` or
  ``basis`` of shape (n_features, n_components), and any other result;
- ``communication(params, shape) -> Cost``, the closed form of the cost of a complete `run`;
- ``COLUMNS``, if it counts anything: name -> (units, description); and ``RELEASED``, the names of
  the columns that a private run releases (the others are exact functions of the data);
- ``LABELLED = True``, if it learns from labels: its steps get
  `fedcore.problems.clients.Labelled` data;
- ``SPARSE = True``, if its steps also work on sparse clients, `fedcore.sparse.SparseRows`: they
  multiply by the data and by their transpose, and ask for their size, and nothing else;
- ``CASE``, what the checks cannot know, such as its plain form: a mapping with attributes of
  `fedcore.testing.Case` as keys.

`run` calls ``record(iteration, **iterate)`` for every new iterate: with iteration 0 before the
first round, then in ``for k in record.rounds(most):``, a loop that ends with the run. Its arguments
are

- ``basis=…`` or ``factors=…``, or ``classifiers=…`` for that task;
- ``models=…``, one row of regression coefficients per client, if the data have labels;
- ``target=…``, the number of leading directions sought, if it is not the number of columns;
- ``counts={column: number, …}``, if the module has COLUMNS.

A client step reads its data, its state and its message. It may hold parameters and plain numbers of
the server's own, such as a number of steps, but neither an array nor a number that was found in the
clients' data: these are broadcast, and the client keeps or computes what it needs.

A private method has a parameter ``epsilon``, None for no privacy. It first calls
``federation.protect(delta=…, neighbours=…)``, after which the ledger has an ε. Its client steps add
noise by ``state.privacy``, and mark what they compute from releases by `derived` (see
`fedcore.privacy.mechanisms`).
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from fedcore.errors import InputError, require_known
from fedcore.federation.ledger import Cost, Shape
from fedcore.parts.params import describe
from fedcore.plugins import Registry
from fedcore.problems.labelled import floats
from fedcore.tasks import TASKS, Task
from fedcore.validation import check_names

REGISTRY = Registry(__name__, __path__, "algorithm",
                    "`fedcore algorithms` lists all; `fedcore pca FILES` needs none")  # fmt: skip
names = REGISTRY.names
PARTS = ("PAPER", "Params", "run", "communication")  # names that every module must have


@dataclass(frozen=True)
class Algorithm:
    """A registered algorithm.

    Attributes
    ----------
    name : str
        Name in the registry and in configuration files.
    module : module
        Module that defines it.
    """

    name: str
    module: ModuleType

    @property
    def paper(self) -> str:
        """Short name of its paper."""
        return self.module.PAPER

    @property
    def documentation(self) -> str:
        """The module's docstring, which is also there under ``python -OO``."""
        known = self.module.__doc__ or ""
        if not known and sys.flags.optimize > 1:
            known = ast.get_docstring(ast.parse(inspect.getsource(self.module))) or ""
        return inspect.cleandoc(known)

    @property
    def title(self) -> str:
        """First line of its documentation."""
        return (self.documentation or self.name).splitlines()[0]

    @property
    def citation(self) -> str:
        """Where it comes from: the second paragraph of its documentation, in one line."""
        paragraphs = self.documentation.split("\n\n")
        return " ".join(paragraphs[1].split()) if len(paragraphs) > 1 else ""

    @property
    def columns(self) -> Mapping[str, tuple[str, str]]:
        """Units and description of each of its own columns."""
        return getattr(self.module, "COLUMNS", {})

    @property
    def released(self) -> frozenset[str]:
        """Names of the columns that a private run releases."""
        return frozenset(getattr(self.module, "RELEASED", ()))

    def private(self, params: Any) -> bool:
        """Return whether a run with these parameters is private, that is, has an ε."""
        return getattr(params, "epsilon", None) is not None

    @property
    def task(self) -> Task:
        """What it learns."""
        return TASKS[_task_of(self.module)]

    @property
    def labelled(self) -> bool:
        """Whether it learns from labels."""
        return getattr(self.module, "LABELLED", self.task.labelled)

    @property
    def sparse(self) -> bool:
        """Whether it takes sparse clients."""
        return getattr(self.module, "SPARSE", False)

    @property
    def run(self) -> Callable[..., dict[str, Any]]:
        """The algorithm itself: ``run(federation, params, rng, record)``."""
        return self.module.run

    def takes(self, name: str) -> bool:
        """Return whether it has a parameter of this name."""
        return name in {field.name for field in dataclasses.fields(self.module.Params)}

    def params(
        self, values: Mapping[str, Any], *, form: str = "NAME=VALUE", drop: str = "leave it out"
    ) -> Any:
        """Build the algorithm's parameters, refusing unknown and missing names.

        Parameters
        ----------
        values : mapping
        form : str
            How the caller is given a parameter, for messages.
        drop : str
            What to do with a rank that is too much, for messages.

        Raises
        ------
        InputError
            For a rank of what learns no subspace, an unknown name, missing required names, or a
            value out of range.
        """
        if "n_components" in values and not self.takes("n_components"):
            raise InputError(
                f"{self.name} has no parameter 'n_components', as it learns no subspace: {drop}"
            )
        self._require_all(values, form)
        check_names(self.module.Params, values, self.name)
        if values.get("start") is not None:
            values = {**values, "start": floats(values["start"], "start")}
        return self.module.Params(**values)

    def _require_all(self, values: Mapping[str, Any], form: str) -> None:
        """Name all parameters that lack a value, with what they may be.

        An unknown name may be one of them, misspelt: nothing is said before it is refused.
        """
        fields = dataclasses.fields(self.module.Params)
        required = {f.name for f in fields if f.default is f.default_factory is dataclasses.MISSING}
        missing = required - values.keys()
        if not missing or values.keys() - {f.name for f in fields}:
            return
        described = describe(self.module.Params)
        lacking = [f"'{known.name}' ({known.kind})" for known in described if known.name in missing]
        noun, them = ("parameter", "it") if len(lacking) == 1 else ("parameters", "them")
        raise InputError(
            f"{self.name} needs the {noun} {' and '.join(lacking)}: give {them} as {form}"
        )

    def communication(self, params: Any, shape: Shape) -> Cost:
        """Return the communication of a complete run, by the closed form."""
        return self.module.communication(params, shape)


def get(name: str) -> Algorithm:
    """Return the algorithm registered as `name`.

    Raises
    ------
    InputError
        When there is no such algorithm (the message suggests the nearest name), or its module
        cannot be imported or is none, see `of`.
    """
    return of(name, REGISTRY.module(name))


def of(name: str, module: ModuleType) -> Algorithm:
    """Return the algorithm of a module, registered or not.

    Raises
    ------
    InputError
        When the module lacks a required name, or its ``Params`` lacks a required field, or
        ``PAPER`` is no text, or ``TASK`` is unknown.
    """
    lacking = [part for part in PARTS if not hasattr(module, part)]
    if lacking:
        raise InputError(
            f"algorithm '{name}': {module.__name__} has no {' and no '.join(lacking)}; "
            "fedcore.algorithms says what a module holds"
        )
    if not isinstance(module.PAPER, str):
        raise InputError(
            f"algorithm '{name}': PAPER of {module.__name__} is {module.PAPER!r}: give it a name"
        )
    task = _task_of(module)
    require_known(task, TASKS, f"algorithm '{name}': unknown TASK", InputError)
    fields = getattr(module.Params, "__dataclass_fields__", {})
    missing = [field for field in TASKS[task].fields if field not in fields]
    if missing:
        raise InputError(
            f"algorithm '{name}': Params of {module.__name__} has no {' and no '.join(missing)}; "
            "it is a dataclass with at least these"
        )
    return Algorithm(name, module)


def _task_of(module: ModuleType) -> str:
    return getattr(module, "TASK", "subspace")

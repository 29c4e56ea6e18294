"""Registry of algorithms: one module, one algorithm, found by its file name.

To add one, drop a module into this package, or register one from another package under the entry
point group ``fedcore.algorithms``. The module's docstring is for people: its first line is the
method's title, and the text says where the method departs from the paper. At its end the module
declares the algorithm::

    ALGORITHM = Algorithm(paper="hospital", parameters=Params, run=run, communication=communication)

See `Algorithm` for the other arguments.

`run` calls ``record(iteration, **iterate)`` for every new iterate: once with iteration 0 before the
first round, then with iteration k in the loop ``for k in record.rounds(most):``, which ends after
``most`` rounds, or earlier if a record has ended the run. The arguments of ``record`` are

- ``basis=…`` or ``factors=…`` if the task is a subspace, ``classifiers=…`` if it is classifiers;
- ``models=…``, one row of regression coefficients per client, if the data have labels;
- ``target=…``, the number of leading directions sought, if it is not the number of columns;
- ``counts={column: number, …}``, if the algorithm has columns.

A client step reads its data, its state and its message. The function may also hold parameters and
plain numbers of the server's own, such as a number of steps. It may hold neither an array nor a
number that was found in the clients' data: the server broadcasts such values, and the client keeps
them or computes from them what it needs.

A private method has a parameter ``epsilon``; None means a run without privacy. It first calls
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
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from fedcore.arrays import floats
from fedcore.errors import InputError
from fedcore.federation.ledger import Cost, Shape
from fedcore.parts.params import describe
from fedcore.plugins import Registry
from fedcore.problems.tasks import SUBSPACE, Task
from fedcore.validation import check_names

LISTED = "`fedcore list methods` shows all; `fedcore pca FILES` needs none"
REGISTRY = Registry(__name__, __path__, "algorithm", LISTED)
names = REGISTRY.names
FORM = "ALGORITHM = Algorithm(paper=…, parameters=Params, run=run, communication=communication)"
NO_MODULE = ModuleType("")  # of an algorithm that the registry has not seen


@dataclass(frozen=True, kw_only=True, eq=False)
class Algorithm:
    """Declaration of a method, which its module assigns to ``ALGORITHM``.

    Attributes
    ----------
    paper : str
        Short name of the paper it belongs to.
    parameters : type
        A frozen dataclass of hyper-parameters with at least the fields of its task, which for a
        subspace are ``n_components`` and ``start``. Subclasses of
        `fedcore.parts.params.Parameters` (for classifiers, of `fedcore.deep.settings.Params`) have
        them, and check every field.
    run : callable
        ``run(federation, params, rng, record) -> dict`` of final arrays: if the task is a subspace,
        ``V`` or ``basis`` of shape (n_features, n_components), and any other results.
    communication : callable
        ``communication(params, shape) -> Cost``, the closed form of the cost of a complete `run`.
    task : Task
        What the method learns: a task of `fedcore.problems.tasks`.
    labelled : bool
        Whether it learns from labels: its steps get `fedcore.problems.clients.Labelled` data. All
        classifiers do.
    sparse : bool
        Whether its steps also work on sparse clients, `fedcore.sparse.SparseRows`. Such steps only
        multiply by the data and by their transpose, and ask for their size.
    columns : mapping of str to (str, str)
        Units and description of each column that its ``counts`` fill.
    released : frozenset of str
        Names of the columns that a private run releases; the others are exact functions of the
        data.
    gram_products_only : bool
        Whether its steps read the data only through `fedcore.parts.gram_products.gram_product`.
        `FederatedPCA` may then make the Gram matrix of all data first.
    commutes : callable, optional
        ``commutes(params)`` says whether the method commutes with rotations of the features. Such a
        method takes products with the data and with their transposes, and inner products, but looks
        at no single feature. A cell with ``cut`` needs such a method. None if the method never
        commutes.
    private_fit : mapping, optional
        Parameters with which a private `FederatedPCA` runs the method. With these parameters the
        method's noise is Gaussian, and neighbouring data sets differ by one record added or
        removed. None if the method has no such noise.
    steps : callable, optional
        ``steps(params, k)``, the number of products with the data that a client makes in round k.
        None if a client makes one product per round.
    citation : str
        Source of the method; a history keeps it, and pages print it below the docstring.
    look : (str, str), optional
        Colour and line in figures, keys of ``COLOURS`` and ``LINES`` of
        `fedcore.reports.curve_styles`; by default both are derived from the method's name.
    case : mapping
        Attributes of `fedcore.testing.Case` whose values the checks cannot find out by themselves,
        such as the method's plain form.
    name : str
        Name in the registry and in configuration files; the registry fills it in.
    module : module
        Module that declares it; the registry fills it in.

    Raises
    ------
    InputError
        For an argument of the wrong kind, such as a `run` that cannot be called.
    """

    paper: str
    parameters: type
    run: Callable[..., dict[str, Any]]
    communication: Callable[[Any, Shape], Cost]
    task: Task = SUBSPACE
    labelled: bool = False
    sparse: bool = False
    columns: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    released: frozenset[str] = frozenset()
    gram_products_only: bool = False
    commutes: Callable[[Any], bool] | None = None
    private_fit: Mapping[str, Any] | None = None
    steps: Callable[[Any, int], int] | None = None
    citation: str = ""
    look: tuple[str, str] | None = None
    case: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    module: ModuleType = NO_MODULE

    def __post_init__(self) -> None:
        if not isinstance(self.paper, str) or not self.paper:
            raise InputError(f"ALGORITHM has paper={self.paper!r}: write the paper's short name")
        if not isinstance(self.task, Task):
            raise InputError(
                f"ALGORITHM has task={self.task!r}: write task=CLASSIFIERS, of "
                "fedcore.problems.tasks, or leave it out for a subspace"
            )
        for part in ("run", "communication"):
            if not callable(getattr(self, part)):
                raise InputError(f"ALGORITHM has {part}={getattr(self, part)!r}: write a function")
        fields = getattr(self.parameters, "__dataclass_fields__", {})
        if missing := [name for name in self.task.fields if name not in fields]:
            raise InputError(
                f"ALGORITHM has parameters={self.parameters!r} without {' and '.join(missing)}: "
                "write a dataclass with at least these fields"
            )
        object.__setattr__(self, "labelled", self.labelled or self.task.labelled)

    @property
    def documentation(self) -> str:
        """The module's docstring; under ``python -OO`` it is read from the source."""
        known = self.module.__doc__ or ""
        if not known and sys.flags.optimize > 1:
            known = ast.get_docstring(ast.parse(inspect.getsource(self.module))) or ""
        return inspect.cleandoc(known)

    @property
    def title(self) -> str:
        """First line of its documentation."""
        return (self.documentation or self.name).splitlines()[0]

    def private(self, params: Any) -> bool:
        """Return whether a run with these parameters is private, that is, has an ε.

        Parameters
        ----------
        params : Params
        """
        return getattr(params, "epsilon", None) is not None

    def takes(self, name: str) -> bool:
        """Return whether the algorithm has a parameter of this name.

        Parameters
        ----------
        name : str
        """
        return name in {field.name for field in dataclasses.fields(self.parameters)}

    def params(
        self, values: Mapping[str, Any], *, form: str = "NAME=VALUE", drop: str = "leave it out"
    ) -> Any:
        """Build the algorithm's parameters, refusing unknown and missing names.

        Parameters
        ----------
        values : mapping
        form : str
            How a user gives a parameter to the caller, for error messages.
        drop : str
            What a user should do with a rank that the algorithm does not take, for error messages.

        Raises
        ------
        InputError
            For a rank if the algorithm learns no subspace, an unknown name, missing required names,
            or a value out of range.
        """
        if "n_components" in values and not self.takes("n_components"):
            raise InputError(
                f"{self.name} has no parameter 'n_components', as it learns no subspace: {drop}"
            )
        self._require_all(values, form)
        check_names(self.parameters, values, self.name)
        if values.get("start") is not None:
            values = {**values, "start": floats(values["start"], "start")}
        return self.parameters(**values)

    def _require_all(self, values: Mapping[str, Any], form: str) -> None:
        """Raise an error that names all required parameters without a value, and their kinds.

        If a name is unknown, nothing is raised here: it may be a required name that is misspelt,
        and `check_names` refuses it next.
        """
        fields = dataclasses.fields(self.parameters)
        required = {f.name for f in fields if f.default is f.default_factory is dataclasses.MISSING}
        missing = required - values.keys()
        if not missing or values.keys() - {f.name for f in fields}:
            return
        described = describe(self.parameters)
        lacking = [f"'{known.name}' ({known.kind})" for known in described if known.name in missing]
        noun, them = ("parameter", "it") if len(lacking) == 1 else ("parameters", "them")
        raise InputError(
            f"{self.name} needs the {noun} {' and '.join(lacking)}: give {them} as {form}"
        )


def get(name: str) -> Algorithm:
    """Return the algorithm registered as `name`.

    Raises
    ------
    InputError
        When there is no such algorithm (the message suggests the nearest name), or its module
        cannot be imported or declares no algorithm.
    """
    return from_module(name, REGISTRY.module(name))


def from_module(name: str, module: ModuleType) -> Algorithm:
    """Return the ``ALGORITHM`` of a module, registered or not, with its name and module filled in.

    Raises
    ------
    InputError
        When the module declares no algorithm.
    """
    found = getattr(module, "ALGORITHM", None)
    if not isinstance(found, Algorithm):
        raise InputError(
            f"algorithm '{name}': {module.__name__} has no ALGORITHM: end the file with {FORM}, "
            "and take Algorithm from fedcore.algorithms"
        )
    return dataclasses.replace(found, name=name, module=module)

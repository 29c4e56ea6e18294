"""Registry that finds an algorithm by the file name of its module.

To add an algorithm, put a module into this package, or register a module of another package under
the entry point group ``fedcore.algorithms``. The first line of the module's docstring is the
method's title. The rest of the docstring describes the method, and says where it differs from its
paper.

The module ends by declaring the algorithm::

    ALGORITHM = Algorithm(paper="hospital", parameters=Params, run=run, communication=communication)

The function `run` hands every new iterate to its argument `record`, by the call ``record(iteration,
**iterate)``. The first call, before the first round, has iteration 0. Most methods loop with ``for
k in record.rounds(most):`` and pass the round's number k as iteration. The loop ends after ``most``
rounds, or earlier if ``record`` ends the run, for example because an iterate is not finite.

A method that learns a subspace passes ``basis=…`` to ``record`` or, if it factorises the samples as
U Vᵀ, ``factors=…``. A method that trains classifiers passes ``classifiers=…``. A method for linear
regression passes ``basis=…`` and ``models=…``, a matrix with one row of coefficients per client.
The argument ``target=…`` of ``record`` is the number of leading directions that the method seeks,
by default the number of columns of the basis. The argument ``counts={column: number, …}`` contains
the values of the columns that the algorithm adds to the history, the table with one row per call of
``record``.

A client step is a function of the client's data, the client's state and the server's message. The
function may use, as closure variables, parameters and numbers that the server chooses, such as a
number of local steps. It may not use arrays in this way, nor numbers computed from the clients'
data. The server must broadcast the arrays that a client step needs, and the client may keep them.

A differentially private method has a parameter ``epsilon``; with ``epsilon=None`` the method runs
without privacy. Before the first upload, the method calls ``federation.protect(delta=…,
neighbours=…)``, which starts to count the privacy loss ε. The client steps of a private method add
noise by the methods of ``state.privacy``. If a client sends a value that it has computed from such
noisy values, the step passes the value through `derived` (see `fedcore.privacy.mechanisms`).
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
    """Declaration of a method, assigned to ``ALGORITHM`` in the method's module.

    Attributes
    ----------
    paper : str
        Short name, such as ``faps``, of the paper under which fedcore lists the method.
    parameters : type
        Frozen dataclass of hyper-parameters. If the method learns a subspace, the class needs the
        fields ``n_components`` and ``start``, as in `fedcore.parts.params.Parameters`. If the
        method trains classifiers, the class needs the field ``model``, as in
        `fedcore.deep.settings.Params`. A class that inherits from one of these two also checks the
        value of every field.
    run : callable
        ``run(federation, params, rng, record)`` returns a dict of final arrays. For a subspace, the
        dict contains ``V`` or ``basis`` of shape (n_features, n_components).
    communication : callable
        ``communication(params, shape)`` computes the `Cost` of a whole run from a closed formula.
    task : Task
        What the method learns, such as a subspace: one of the tasks in `fedcore.problems.tasks`.
    labelled : bool
        Whether the client steps get `fedcore.problems.clients.Labelled` data; always true for
        classifiers.
    sparse : bool
        Whether the client steps accept sparse data, `fedcore.sparse.SparseRows`, besides dense
        arrays. A step on sparse data may only multiply by the data or the transposed data, and read
        the shape and norms of the data.
    columns : mapping of str to (str, str)
        Unit and description of each column that the method adds to the history, the run's table of
        results.
    released : frozenset of str
        Names of those `columns` whose values the privacy guarantee of a private run covers. The
        guarantee does not cover the other `columns`, which are computed from the data without
        noise.
    gram_products_only : bool
        True if the client steps read the data only through
        `fedcore.parts.gram_products.gram_product`. `FederatedPCA` may then form the Gram matrix of
        all data before the first round.
    commutes : callable, optional
        ``commutes(params)`` tells whether the method commutes with rotations of the features and of
        a client's samples. A method commutes if it uses the data only in matrix products and inner
        products, and never uses one feature, one sample or the number of samples by itself.
        Experiments with the option ``cut``, which reduces the data to few coordinates, need such a
        method (see `fedcore.experiments.axes`). None means that the method never commutes.
    private_fit : mapping, optional
        Parameters that `FederatedPCA` passes to the method in a private fit. With these parameters
        the noise is Gaussian, and neighbouring data sets differ by one added or removed row. None
        means that `FederatedPCA` cannot run the method privately.
    steps : callable, optional
        ``steps(params, k)`` is the number of products with the data that a client makes in round k.
        None means one product per client and round.
    citation : str
        Publication that describes the method; history files store it, and web pages print it.
    look : (str, str), optional
        Colour and line style in figures, as keys of ``COLOURS`` and ``LINES`` of
        `fedcore.reports.curve_styles`. By default the method's name determines colour and line
        style.
    case : mapping
        Facts about the method that the checks in `fedcore.testing` need and cannot find out, such
        as a reference implementation in NumPy. The keys are attributes of `fedcore.testing.Case`.
    name : str
        Name in the registry and in configuration files; set by the registry.
    module : module
        Module that declares the algorithm; set by the registry.

    Raises
    ------
    InputError
        If an argument has the wrong kind, such as a `run` that is not callable.
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
                f"ALGORITHM has task={self.task!r}: write task=CLASSIFIERS, from "
                "fedcore.problems.tasks, or leave task out for a subspace"
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
        """The module's docstring; under ``python -OO`` it is read from the source file."""
        known = self.module.__doc__ or ""
        if not known and sys.flags.optimize > 1:
            known = ast.get_docstring(ast.parse(inspect.getsource(self.module))) or ""
        return inspect.cleandoc(known)

    @property
    def title(self) -> str:
        """First line of the module's docstring; the algorithm's name if there is no docstring."""
        return (self.documentation or self.name).splitlines()[0]

    def private(self, params: Any) -> bool:
        """Return whether a run with these parameters is differentially private.

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
        """Return the algorithm's ``Params`` with these values; refuse unknown and missing names.

        Parameters
        ----------
        values : mapping
            Value of each parameter by name.
        form : str
            Syntax in which error messages tell the user to give a parameter, such as ``--set
            NAME=VALUE``.
        drop : str
            Advice in the error message if `values` contains ``n_components`` and the algorithm has
            no such parameter.

        Raises
        ------
        InputError
            If a name is unknown, a required name is missing, or a value is out of range.
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
        """Raise an error that lists every missing required parameter with its allowed values.

        If `values` contains an unknown name, which may be a misspelt required parameter, this
        method raises nothing, and `params` raises the error.
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
        If no algorithm has this name (the message suggests the nearest name), or if the algorithm's
        module cannot be imported or declares no algorithm.
    """
    return from_module(name, REGISTRY.module(name))


def from_module(name: str, module: ModuleType) -> Algorithm:
    """Return the ``ALGORITHM`` of a module, with its attributes ``name`` and ``module`` set.

    Raises
    ------
    InputError
        If the module declares no algorithm.
    """
    found = getattr(module, "ALGORITHM", None)
    if not isinstance(found, Algorithm):
        raise InputError(
            f"algorithm '{name}': {module.__name__} has no ALGORITHM: end the file with {FORM}, "
            "and import Algorithm from fedcore.algorithms"
        )
    return dataclasses.replace(found, name=name, module=module)

"""Methods that scikit-learn expects of an estimator, written without scikit-learn.

The constructor of an estimator stores its parameters unchanged, and `fit` checks them. A method
that needs classes of scikit-learn imports scikit-learn when it is called.
"""

from __future__ import annotations

import html
import importlib
import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self, overload

import numpy as np

from fedcore.errors import InputError, require_known
from fedcore.estimators import inputs
from fedcore.user_tables.labelled import Features, as_they_look
from fedcore.validation import one_of

_FRAMES = "pandas", "polars"


class NotFittedError(InputError, AttributeError):
    """Raised if an estimator is used before `fit`, like scikit-learn's error of the same name."""


class Transformer(ABC):
    """Base class with the methods that scikit-learn expects of a transformer, such as `get_params`.

    A subclass stores every constructor argument in an attribute of the same name. The argument
    ``params`` is a mapping with the hyper-parameters of the algorithm.
    """

    params: Mapping[str, Any] | None
    n_features_in_: int
    components_: np.ndarray
    _names_in: list[Any] | None
    _sklearn_output_config: dict[str, str]

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """Return the names and default values of the constructor's parameters."""
        given = inspect.signature(cls.__init__).parameters.values()
        return {p.name: p.default for p in given if p.name != "self"}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the estimator's parameters by name.

        Parameters
        ----------
        deep : bool, default=True
            Whether to add each entry of ``params`` as ``params__<name>``.

        Returns
        -------
        dict
        """
        found = {name: getattr(self, name) for name in self._defaults()}
        inner = self.params if deep and isinstance(self.params, Mapping) else {}
        return found | {f"params__{name}": value for name, value in inner.items()}

    def set_params(self, **values: Any) -> Self:
        """Set parameters, which `fit` checks later, and return the estimator.

        Parameters
        ----------
        **values : object
            New values by name; ``params__rounds=9`` sets one entry of ``params``.

        Returns
        -------
        Transformer

        Raises
        ------
        InputError
            If the estimator has no parameter of a given name.
        """
        known = self._defaults()
        for name in values:
            if not name.startswith("params__"):
                require_known(name, known, f"{type(self).__name__} has no parameter", InputError)
        for name in sorted(values, key="params".__ne__):  # `params` as a whole comes first
            if name.startswith("params__"):
                kept = self.params if isinstance(self.params, Mapping) else {}
                self.params = {**kept, name.removeprefix("params__"): values[name]}
            else:
                setattr(self, name, values[name])
        return self

    def __repr__(self) -> str:
        shown = [
            f"{name}={_short(getattr(self, name))}"
            for name, default in self._defaults().items()
            if not _same(getattr(self, name), default)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _repr_html_(self) -> str:
        """Return, as HTML for notebooks, the text that `print` shows."""
        return f"<pre>{html.escape(str(self))}</pre>"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def _require_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            message = f"this {type(self).__name__} is not fitted yet: call fit first"
            raise _not_fitted()(message)

    def _keep_names(self, features: Features) -> None:
        """Store the clients' column names; set ``feature_names_in_`` only if all are strings."""
        self._names_in = features.names
        if features.names is not None and all(isinstance(name, str) for name in features.names):
            self.feature_names_in_ = np.array(features.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def get_metadata_routing(self) -> Any:
        """Return the arguments that scikit-learn's metadata routing may pass to `fit`.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRequest
        """
        from sklearn.utils.metadata_routing import MetadataRequest

        request = getattr(self, "_metadata_request", None)
        if request is None:
            request = MetadataRequest(owner=self)
            request.fit.add_request(param="groups", alias=None)
        return request

    def set_fit_request(self, *, groups: bool | str | None = None) -> Self:
        """Ask scikit-learn's metadata routing to pass `groups` to `fit`.

        Parameters
        ----------
        groups : bool, str or None, default=None
            Whether to pass `groups`. A string means that a meta-estimator gets `groups` under this
            name. With None, a meta-estimator that gets `groups` raises an error.

        Returns
        -------
        Transformer
        """
        request = self.get_metadata_routing()
        request.fit.add_request(param="groups", alias=groups)
        self._metadata_request = request  # `clone` copies it
        return self

    @overload
    def fit_transform(
        self, clients: Sequence[Any], y: None = None, *, groups: Any = None
    ) -> list[np.ndarray]: ...

    @overload
    def fit_transform(
        self, clients: Mapping[Any, Any], y: None = None, *, groups: Any = None
    ) -> Any: ...

    @overload
    def fit_transform(self, clients: Any, y: None = None, *, groups: Any = None) -> np.ndarray: ...

    def fit_transform(self, clients: Any, y: None = None, *, groups: Any = None) -> Any:
        """Fit the estimator and return the clients' scores.

        Parameters
        ----------
        clients, y, groups
            See `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_components), or a list with one such array per client
            One array for a single matrix, and a list for several clients.
        """
        given = inputs.given(clients, groups)
        self._fit(given)
        if given.rows is not None:
            return self.transform(clients)
        scores = [self.transform(matrix) for matrix in given.matrices]
        return scores if len(scores) > 1 or isinstance(clients, Sequence) else scores[0]

    @abstractmethod
    def _fit(self, given: inputs.Given) -> None: ...

    @abstractmethod
    def transform(self, x: Any) -> np.ndarray:
        """Return the scores of samples."""

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose the type of container that `transform` returns.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            "default" means an array, "pandas" and "polars" mean a data frame of that library. None
            leaves the choice unchanged.

        Returns
        -------
        Transformer

        Raises
        ------
        InputError
            If `transform` is none of these values, or if the library is not installed.
        """
        if transform is None:
            return self
        one_of(("default", *_FRAMES))(transform, "transform")
        if transform in _FRAMES:
            _library(transform)
        self._sklearn_output_config = {"transform": transform}
        return self

    def _output(self, values: np.ndarray, given: Any) -> Any:
        """Return scores in the chosen container; a pandas data frame gets the index of `given`."""
        sklearn = sys.modules.get("sklearn")
        common = "default" if sklearn is None else sklearn.get_config()["transform_output"]
        wanted = getattr(self, "_sklearn_output_config", {}).get("transform", common)
        if wanted not in _FRAMES:
            return values
        make, names = _library(wanted).DataFrame, self.get_feature_names_out()
        if wanted == "polars":
            return make(values, schema=names.tolist(), orient="row")
        index = given.index if isinstance(given, make) else None
        return make(values, columns=names, index=index, copy=False)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the column names of the scores: the class name in lower case and a number.

        Parameters
        ----------
        input_features : array-like of str, optional
            Must equal the column names of the matrices in `fit`, if they had names. The result does
            not depend on `input_features`.

        Returns
        -------
        ndarray of shape (n_components,)
            Strings in an array of dtype object.

        Raises
        ------
        NotFittedError
            If called before `fit`.
        InputError
            If `input_features` differ from the column names of the fit.
        """
        self._require_fitted()
        if input_features is not None and self._names_in is not None:
            if as_they_look(input_features) != self._names_in:
                raise InputError("input_features is not equal to feature_names_in_")
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}{i}" for i in range(len(self.components_))], dtype=object)


def _library(name: str) -> Any:
    """Import and return a data frame library.

    Raises
    ------
    InputError
        If the library is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(
            f"set_output: {name} is not installed: pip install {name}, or take "
            'transform="default", which gives arrays'
        ) from error


def _not_fitted() -> type[NotFittedError]:
    theirs = sys.modules.get("sklearn.exceptions")
    if theirs is None:
        return NotFittedError
    return type("NotFittedError", (NotFittedError, theirs.NotFittedError), {})


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(np.all(value == default)))


def _short(value: Any) -> str:
    """Return the text of a value as a user would type it; an array is shown by its shape."""
    if isinstance(value, np.ndarray):
        return f"<array of shape {value.shape}>"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name!r}: {_short(part)}' for name, part in value.items())}}}"
    return repr(value)

"""What scikit-learn expects of an estimator, without scikit-learn.

The constructor keeps its parameters as they were given; `fit` checks them. Only scikit-learn calls
the methods that need its classes; these methods import it when called.
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
    """An estimator was used before `fit`; also scikit-learn's error of this name, if imported."""


class Transformer(ABC):
    """Parameters, printing, and the methods that scikit-learn expects beside `transform`.

    Subclasses keep every argument of their constructor in an attribute of its name. ``params`` is
    one of them: a mapping with the hyper-parameters of the algorithm.
    """

    params: Mapping[str, Any] | None
    n_features_in_: int
    components_: np.ndarray
    _names_in: list[Any] | None
    _sklearn_output_config: dict[str, str]

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """Return the parameters of the constructor, with their defaults."""
        given = inspect.signature(cls.__init__).parameters.values()
        return {p.name: p.default for p in given if p.name != "self"}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

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
        """Set parameters and return the estimator; `fit` checks them.

        Parameters
        ----------
        **values : object
            New values by name; ``params__rounds=9`` sets one entry of ``params``.

        Returns
        -------
        Transformer
            The estimator itself.

        Raises
        ------
        InputError
            For an unknown name.
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
        """Return what `print` shows, for notebooks."""
        return f"<pre>{html.escape(str(self))}</pre>"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def _require_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            message = f"this {type(self).__name__} is not fitted yet: call fit first"
            raise _not_fitted()(message)

    def _keep_names(self, features: Features) -> None:
        """Keep the clients' column names; as in scikit-learn, publish them only if all are text."""
        self._names_in = features.names
        if features.names is not None and all(isinstance(name, str) for name in features.names):
            self.feature_names_in_ = np.array(features.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def get_metadata_routing(self) -> Any:
        """Return which arguments scikit-learn may pass on to `fit`, for its metadata routing.

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
        """Ask scikit-learn's metadata routing to pass `groups` on to `fit`.

        Parameters
        ----------
        groups : bool, str or None, default=None
            Whether to pass `groups`, or the name under which the meta-estimator gets `groups`; with
            None a meta-estimator that gets `groups` raises.

        Returns
        -------
        Transformer
            The estimator itself.
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
        """Fit, and return the scores: of one matrix an array, of several clients a list.

        Parameters
        ----------
        clients, y, groups
            See `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_components), or a list of one for every client
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
        """Choose what `transform` returns.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            An array, or a data frame of that library; None leaves the choice as it is.

        Returns
        -------
        Transformer
            The estimator itself.

        Raises
        ------
        InputError
            For any other value, or a library that is not installed.
        """
        if transform is None:
            return self
        one_of(("default", *_FRAMES))(transform, "transform")
        if transform in _FRAMES:
            _library(transform)
        self._sklearn_output_config = {"transform": transform}
        return self

    def _output(self, values: np.ndarray, given: Any) -> Any:
        """Return `values`, computed from `given`, in the container that `set_output` asks for."""
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
        """Return the names of the columns of `transform`: the name of the class and a number.

        Parameters
        ----------
        input_features : array-like of str, optional
            Used only for a check against the names of the fit.

        Returns
        -------
        ndarray of shape (n_components,)
            Strings, as objects.

        Raises
        ------
        NotFittedError
            Before `fit`.
        InputError
            When `input_features` differ from the names of the fit.
        """
        self._require_fitted()
        if input_features is not None and self._names_in is not None:
            if as_they_look(input_features) != self._names_in:
                raise InputError("input_features is not equal to feature_names_in_")
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}{i}" for i in range(len(self.components_))], dtype=object)


def _library(name: str) -> Any:
    """Import the library of a kind of data frame.

    Raises
    ------
    InputError
        When it is not installed.
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
    """Text of a value as a user would type it; an array is shown by its shape."""
    if isinstance(value, np.ndarray):
        return f"<array of shape {value.shape}>"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name!r}: {_short(part)}' for name, part in value.items())}}}"
    return repr(value)

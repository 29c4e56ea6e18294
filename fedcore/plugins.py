"""Registries, which list modules by name: a package's files, and other packages' entry points.

A registered module is imported only when its name is requested. A module that fails to import
therefore does not affect other modules.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from functools import cached_property
from importlib.metadata import entry_points
from types import ModuleType

from fedcore.errors import InputError, require_known, warn


class Registry:
    """Modules of a package, and modules that other packages add by entry points.

    Parameters
    ----------
    package : str
        Import path of the package. This path is also the name of the entry-point group.
    path : iterable of str
        The package's ``__path__``.
    noun : str
        What error messages call a registered module.
    listed : str
        Text for error messages that says how to list all modules.
    """

    def __init__(self, package: str, path: Iterable[str], noun: str, listed: str = "") -> None:
        self._package, self._path, self._noun = package, list(path), noun
        added = f"an entry point of the group {package} adds one"
        self._listed = "; ".join(filter(None, [listed, added]))

    @cached_property
    def _modules(self) -> dict[str, str]:
        own = {
            info.name: f"{self._package}.{info.name}"
            for info in pkgutil.iter_modules(self._path)
            if not info.name.startswith("_")
        }
        others = {point.name: point.value for point in entry_points(group=self._package)}
        for name in others.keys() & own.keys():
            warn(
                f"entry point {self._package}: '{name}' = {others[name]} is ignored, because "
                f"fedcore's own {self._noun} has this name: rename the entry point"
            )
        return others | own  # an entry point cannot replace what is built in

    def names(self) -> list[str]:
        """Return the names of all registered modules, sorted."""
        return sorted(self._modules)

    def module_name(self, name: str) -> str:
        """Return the import path of a registered module without importing the module.

        Raises
        ------
        InputError
            Raised for an unknown name. The message suggests the nearest known name.
        """
        what = f"unknown {self._noun}"
        require_known(name, self._modules, what, InputError, listed=self._listed)
        return self._modules[name]

    def module(self, name: str) -> ModuleType:
        """Import and return a registered module.

        Raises
        ------
        InputError
            Raised if the name is unknown, or if the import fails for any reason.
        """
        path = self.module_name(name)
        try:
            return importlib.import_module(path)
        except (Exception, SystemExit) as error:
            raise InputError(
                f"{self._noun} '{name}' cannot be imported from {path}: "
                f"{type(error).__name__}: {error}"
            ) from error

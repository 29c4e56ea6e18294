"""Federated subspace, factorisation and representation algorithms under one ledger.

Public names: `run`, `Result`, `Federation`, `History`, the estimator `FederatedPCA`, and the errors
of `fedcore.errors`.
They are imported on first use, so that a command line starts soon. Two parts of SciPy are not:
their import adds filters of warnings, and no call may do that.

What lies where, from top to bottom; a module imports from the lines below its own only:

``cli``
    the command line
``reports``
    from histories to tables, figures and verdicts; ``reports.papers`` has the papers' mathematics
``experiments``, ``estimators``
    from configuration files to histories: the plan, problems, cells, jobs; `FederatedPCA`
``audits``
    what a server learns, by attacks
``calls``
    `fedcore.run`, with its progress
``api``, ``history``, ``progress``
    one run of an algorithm; the HDF5 file of a cell; a bar over rounds
``algorithms``
    one file per method
``deep``
    networks and their training, with PyTorch, which nothing else imports
``parts``, ``recorder``
    what several methods share; what is recorded of a run
``federation``
    the protocol, the ledger, the clients' sides, and engines that carry orders to them
``privacy``, ``metrics``, ``generators``, ``datasets``, ``tasks``
    what a release costs; measures; synthetic models; real data; what a method can learn
``problems``, ``iterates``, ``plugins``, ``config``, ``steps``
    clients' samples and the exact answer; what an algorithm shows; registries; YAML and its
    schemas; client steps and values as bytes
``linalg``, ``seeds``, ``files``, then ``validation``, then ``errors``
    matrices; every random stream; whole and checked files; parameters; sentences

Into ``algorithms``, ``metrics`` and ``generators`` one drops a file; one in ``datasets.formats``
takes a line in ``datasets.loaders``, too. ``docs/adding.md`` shows how.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import scipy.sparse
import scipy.special  # noqa: F401

if TYPE_CHECKING:  # what `__getattr__` hides from type checkers and editors
    from fedcore.calls import Result, run
    from fedcore.errors import ConvergenceWarning, FedcoreError
    from fedcore.estimators import FederatedPCA
    from fedcore.federation.federation import Federation
    from fedcore.reports.public_history import History

__version__ = "0.1.0"

_PUBLIC = {
    "run": "fedcore.calls",
    "Result": "fedcore.calls",
    "FederatedPCA": "fedcore.estimators",
    "Federation": "fedcore.federation.federation",
    "History": "fedcore.reports.public_history",
    "FedcoreError": "fedcore.errors",
    "ConvergenceWarning": "fedcore.errors",
}

__all__ = [
    "ConvergenceWarning",
    "FedcoreError",
    "FederatedPCA",
    "Federation",
    "History",
    "Result",
    "__version__",
    "run",
]


if not TYPE_CHECKING:  # to a type checker, it would make every misspelt name an `Any`

    def __getattr__(name: str) -> Any:
        if name not in _PUBLIC:
            raise AttributeError(f"module 'fedcore' has no attribute '{name}'")
        return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])

"""Federated subspace, factorisation and representation algorithms with one cost ledger.

The public names are `run`, `Result`, `Federation`, `History`, the estimator `FederatedPCA`,
`FedcoreError` and `ConvergenceWarning`. Python imports each public name at its first use, so that
the command line starts quickly. Two parts of SciPy are imported together with fedcore, because
their import adds warning filters. A later call of fedcore must not add warning filters.

A module imports only from modules that are further down this list:

``repro``
    contains the workflow's plan, tables, verdicts and pages.
``cli``
    is the command line.
``reports``, ``testing``
    show histories as text and figures, and check algorithms that users write.
``experiments``, ``estimators``
    run all repeats on generated, downloaded or own data, and offer the estimator `FederatedPCA`.
``audits``
    attack runs to find what a server learns about the clients' data.
``user_runs``
    contains `fedcore.run`, which checks the user's arguments and shows progress.
``history``
    stores the records of all repeats in an HDF5 file, and plots them.
``runs``, ``progress``
    run an algorithm once on checked data, and show a progress bar over the rounds.
``algorithms``
    has one file for each method.
``deep``
    trains networks with PyTorch, and no other package imports PyTorch.
``parts``, ``recorder``
    share code between methods, and record the iterates of a run.
``federation``, ``snapshots``
    implement the protocol, the ledger and the clients, and keep iterates.
``privacy``, ``metrics``, ``generators``, ``datasets``
    compute privacy losses, measure iterates, generate synthetic data and read real data.
``problems``, ``iterates``, ``plugins``
    hold the clients' samples and the exact answer, define iterates, and find plug-ins.
``rowspace``, ``user_tables``
    represent wide matrices by few coordinates, and read users' files and data frames.
``arrays``, ``linalg``, ``seeds``, ``files``, ``validation``, ``sparse``
    check users' arrays, do linear algebra, derive random streams, write files, check parameters
    and hold sparse matrices.
``errors``, ``words``
    define the errors that a user can cause, and the words of messages.

To add an algorithm, metrics or a generator, put a file into ``algorithms``, ``metrics`` or
``generators``. A new file format in ``datasets.formats`` also needs a line in ``datasets.loaders``.
``docs/adding.md`` shows how to add each kind of file.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import scipy.sparse
import scipy.special  # noqa: F401

if TYPE_CHECKING:  # what `__getattr__` hides from type checkers and editors
    from fedcore.errors import ConvergenceWarning, FedcoreError
    from fedcore.estimators import FederatedPCA
    from fedcore.federation.federation import Federation
    from fedcore.history import History
    from fedcore.user_runs import Result, run

__version__ = "0.1.0"

_PUBLIC = {
    "run": "fedcore.user_runs",
    "Result": "fedcore.user_runs",
    "FederatedPCA": "fedcore.estimators",
    "Federation": "fedcore.federation.federation",
    "History": "fedcore.history",
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

"""Federated subspace, factorisation and representation algorithms under one ledger.

Public names: `run`, `Result`, `Federation`, `History`, the estimator `FederatedPCA`, and the errors
of `fedcore.errors`. These names are imported on first use, so that a command line starts soon. Two
parts of SciPy are imported at once, because their import adds filters of warnings, which a later
call of fedcore may not do.

This list says what lies where. A module imports only from modules on lines below its own:

``repro``
    what only the workflow needs: plan, tables, verdicts, pages; the library works without them
``cli``
    the command line
``reports``, ``testing``
    histories as text and figures; checks of methods that others write
``experiments``, ``estimators``
    all repeats of a run, on generated, downloaded or own data; `FederatedPCA`
``audits``
    what a server learns, by attacks
``user_runs``
    `fedcore.run`: checks what a user gives, and shows progress
``history``
    what repeats of a run recorded: its HDF5 file, its plot, its data frame
``runs``, ``progress``
    one run of an algorithm on checked data; a bar over rounds
``algorithms``
    one file per method
``deep``
    networks and their training, with PyTorch, which nothing else imports
``parts``, ``recorder``
    what several methods share; what is recorded of a run
``federation``, ``snapshots``
    the protocol, the ledger, the clients' sides, and engines that carry orders to them; the
    iterates that are kept
``privacy``, ``metrics``, ``generators``, ``datasets``
    what a release costs; measures; synthetic models; real data
``problems``, ``iterates``, ``plugins``
    clients' samples, the exact answer and what can be learnt; what an algorithm shows; registries
``rowspace``, ``user_tables``
    wide blocks; users' files and frames
``arrays``, ``linalg``, ``seeds``, ``files``, ``validation``, ``sparse``
    users' arrays; matrices; random streams; whole and checked files, YAML, the schema of a
    history; parameters; sparse matrices
``errors``, ``words``
    errors that a user can cause; the words of messages

To add an algorithm, metrics or a generator, put a file into ``algorithms``, ``metrics`` or
``generators``. A file in ``datasets.formats`` also needs a line in ``datasets.loaders``.
``docs/adding.md`` shows how.
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

"""Federated PCA, factorisation and representation learning, with a ledger of all traffic.

The public names are `run`, `Result`, `Federation`, `History`, the estimator `FederatedPCA`,
`FedcoreError` and `ConvergenceWarning`. A module is imported only when its public name is first
used, so the command line starts quickly. `scipy.sparse` and `scipy.special` add warning filters
when they are imported. Importing fedcore imports both, so later calls of fedcore add no filters.

Each module imports only from modules further down in this list:

- ``repro`` plans the Snakemake workflow, and writes tables, verdicts on the papers' claims, and
  pages.
- ``cli`` is the command line.
- ``testing`` checks algorithms that users write.
- ``reports`` shows the records of runs as text and figures.
- ``experiments`` runs methods several times on generated, downloaded or users' data. ``estimators``
  contains the estimator `FederatedPCA`.
- ``audits`` attacks runs to find what a server learns about the clients' data.
- ``user_runs`` contains `fedcore.run`, which checks the user's arguments and shows progress.
- ``history`` stores the records of repeated runs in an HDF5 file, and plots them.
- ``runs`` runs an algorithm once on checked data. ``progress`` shows a progress bar.
- ``algorithms`` has one file for each method.
- ``deep`` trains networks with PyTorch, and no other package imports PyTorch.
- ``parts`` contains code that several methods share. ``recorder`` records a row of numbers for each
  iterate of a run.
- ``federation`` implements the protocol, the ledger and the clients. ``snapshots`` stores chosen
  iterates. ``stop_rules`` decides when a run ends.
- ``privacy`` computes privacy losses. ``metrics`` measures the quality of iterates. ``generators``
  generates synthetic data. ``datasets`` reads real data.
- ``problems`` contains classes for the clients' samples and the exact answer. ``iterates`` defines
  the results that algorithms report after their steps. ``plugins`` finds plug-ins.
- ``rowspace`` represents matrices with many rows by a few coordinates. ``user_tables`` reads users'
  files and data frames.
- ``arrays`` checks users' arrays. ``linalg`` does linear algebra. ``seeds`` derives random streams.
  ``files`` writes files. ``validation`` checks parameters.
- ``sparse`` implements sparse client matrices.
- ``errors`` defines the errors that a user can cause. ``words`` builds phrases for messages.

To add an algorithm, metrics or a generator, put a file into ``algorithms``, ``metrics`` or
``generators``. A new file format needs a file in ``datasets.formats`` and a line in
``datasets.loaders``. ``docs/adding.md`` shows how to add each kind of file.
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

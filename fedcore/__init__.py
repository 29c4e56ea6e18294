"""Federated subspace, factorisation and representation algorithms under one ledger.

Public names: `run`, `Result`, `FederatedPCA`, `Federation`, `History`, and the errors of
`fedcore.errors`. They are imported on first use, so that ``import fedcore`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what `__getattr__` hides from type checkers and editors
    from fedcore.api import Result, run
    from fedcore.errors import ConvergenceWarning, FedcoreError
    from fedcore.estimators import FederatedPCA
    from fedcore.federation.federation import Federation
    from fedcore.history import History

__version__ = "0.1.0"

_PUBLIC = {
    "run": "fedcore.api",
    "Result": "fedcore.api",
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


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'fedcore' has no attribute '{name}'")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])

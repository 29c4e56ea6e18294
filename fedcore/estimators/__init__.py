"""`FederatedPCA`, with the interface of scikit-learn, which need not be installed."""

from __future__ import annotations

from fedcore.estimators.base import NotFittedError as NotFittedError
from fedcore.estimators.pca import FederatedPCA as FederatedPCA

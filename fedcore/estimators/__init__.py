"""`FederatedPCA`, which has scikit-learn's interface but does not need scikit-learn."""

from __future__ import annotations

from fedcore.estimators.base import NotFittedError as NotFittedError
from fedcore.estimators.pca import FederatedPCA as FederatedPCA

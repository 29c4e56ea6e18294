"""`FederatedPCA`, an estimator with scikit-learn's interface that does not need scikit-learn."""

from __future__ import annotations

from fedcore.estimators.base import NotFittedError as NotFittedError
from fedcore.estimators.pca import FederatedPCA as FederatedPCA

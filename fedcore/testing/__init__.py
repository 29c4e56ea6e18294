"""Checks of an algorithm, a data set or a metric of one's own; fedcore's own pass the same ones.

    from fedcore.testing import check_algorithm, check_dataset, check_metrics

    def test_my_pca():
        check_algorithm("my_package.my_pca")

On the command line: ``fedcore check my_package.my_pca``.
"""

from fedcore.testing.algorithm import check_algorithm
from fedcore.testing.cases import Case, Draws
from fedcore.testing.dataset import check_dataset
from fedcore.testing.metric import check_metrics
from fedcore.testing.report import CheckFailed, Finding, Report

__all__ = [
    "Case",
    "CheckFailed",
    "Draws",
    "Finding",
    "Report",
    "check_algorithm",
    "check_dataset",
    "check_metrics",
]

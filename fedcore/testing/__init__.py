"""Checks of a user's algorithm; fedcore's own algorithms pass the same checks.

    from fedcore.testing import check_algorithm

    def test_my_pca():
        check_algorithm("my_package.my_pca")

The command ``fedcore check my_package.my_pca`` runs the checks of `check_algorithm`.
"""

from fedcore.testing.algorithm import check_algorithm
from fedcore.testing.cases import Case, Draws
from fedcore.testing.report import CheckFailed, Finding, Report

__all__ = [
    "Case",
    "CheckFailed",
    "Draws",
    "Finding",
    "Report",
    "check_algorithm",
]

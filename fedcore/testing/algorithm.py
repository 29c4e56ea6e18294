"""All checks of one algorithm."""

from __future__ import annotations

import importlib
from types import ModuleType

from fedcore import algorithms
from fedcore.algorithms import Algorithm
from fedcore.errors import InputError
from fedcore.testing import answers, contract, outside, protocol  # they fill CHECKS
from fedcore.testing.asserting import CHECKS
from fedcore.testing.cases import Case, case_of
from fedcore.testing.report import Report, examine
from fedcore.testing.subject import Subject

__all__ = ["answers", "check_algorithm", "contract", "find_algorithm", "outside", "protocol"]


def find_algorithm(algorithm: str | ModuleType | Algorithm) -> Algorithm:
    """Return an algorithm by its name in the registry, its import path, or its module.

    Raises
    ------
    InputError
        When there is none, or its module cannot be imported or declares none.
    """
    if isinstance(algorithm, Algorithm):
        return algorithm
    if isinstance(algorithm, ModuleType):
        return algorithms.of(algorithm.__name__.rpartition(".")[2], algorithm)
    if algorithm in algorithms.names() or "." not in algorithm:
        return algorithms.get(algorithm)
    try:
        module = importlib.import_module(algorithm)
    except (Exception, SystemExit) as error:
        raise InputError(
            f"{algorithm} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    return algorithms.of(algorithm.rpartition(".")[2], module)


def check_algorithm(
    algorithm: str | ModuleType | Algorithm, case: Case | None = None, *, raising: bool = True
) -> Report:
    """Check that an algorithm keeps the contract of `fedcore.algorithms`.

    It runs on small clients: parameters are declared and refused out of their range; the same seed
    gives the same bytes; components are orthonormal; the ledger has what ``communication`` says;
    no step reads what was not sent to it, and the server nothing but replies; and, where the
    algorithm's `case` gives them, the iterates are those of a plain form and the optimum is
    reached.

    Parameters
    ----------
    algorithm : str, module or Algorithm
        Name in the registry, import path, or the module itself. It need not be registered.
    case : Case, optional
        What the checks are told; by default what its ``ALGORITHM`` says.
    raising : bool, default=True
        Whether to raise when a check fails.

    Returns
    -------
    Report
        Every check with its outcome; ``print`` shows it.

    Raises
    ------
    CheckFailed
        An AssertionError that names every check that has failed.
    InputError
        When the algorithm cannot be imported, or is none.

    Examples
    --------
    >>> from fedcore.testing import check_algorithm
    >>> check_algorithm("one_shot").failed
    []
    """
    chosen = find_algorithm(algorithm)
    subject = Subject(chosen, case_of(chosen) if case is None else case)
    report = examine(
        f"algorithm {chosen.name}", CHECKS, subject, getattr(chosen.module, "__file__", None)
    )
    if raising:
        report.require()
    return report

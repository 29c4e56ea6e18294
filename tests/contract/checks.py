"""The checks of `fedcore.testing` as tests, one for each algorithm or setting of it."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from fedcore import algorithms
from fedcore.algorithms import Algorithm
from fedcore.errors import InputError
from fedcore.testing import Case
from fedcore.testing.algorithm import CHECKS
from fedcore.testing.cases import case_of
from fedcore.testing.report import Skipped, Unsaid
from fedcore.testing.subject import Subject

# These checks try every setting of a case; here each is a test of its own.
OF_A_SETTING = {
    "ends_when_told",
    "charges_what_it_says",
    "does_what_its_plain_form_does",
    "reads_messages_only",
}


def usable() -> list[Algorithm]:
    """Return the registered algorithms that can be imported and have a valid case."""
    found = []
    for name in algorithms.names():
        with contextlib.suppress(InputError):
            known = algorithms.get(name)
            case_of(known)
            found.append(known)
    return found


def named(name: str, setting: Mapping[str, Any]) -> str:
    """Return the id of a setting of an algorithm."""
    return f"{name}-{'-'.join(f'{k}={v}' for k, v in setting.items())}"


def settings_of(names: Iterable[str], case_of: Callable[[str], Case]) -> list[Any]:
    """Return pairs of an algorithm and one of its settings, with their ids."""
    return [
        pytest.param(name, setting, id=named(name, setting))
        for name in names
        for setting in case_of(name).settings
    ]


def checks_of(names: Iterable[str], case_of: Callable[[str], Case]) -> list[Any]:
    """Return triples of a check, an algorithm and its case, with their ids."""
    assert CHECKS.keys() >= OF_A_SETTING
    listed = []
    for check in CHECKS:
        for name in names:
            case = case_of(name)
            if check not in OF_A_SETTING:
                listed.append(pytest.param(check, name, case, id=f"{check}-{name}"))
                continue
            for setting in case.settings:
                one = dataclasses.replace(case, settings=(setting,))
                what = f"{check}-{named(name, setting)}"
                listed.append(pytest.param(check, name, one, id=what))
    return listed


def require(check: str, name: str, case: Case) -> None:
    """Run one check; what a case does not say, that of an own algorithm must."""
    try:
        CHECKS[check](Subject(algorithms.get(name), case))
    except Unsaid as reason:
        pytest.fail(f"{name}: {reason}: say it there, or in tests/contract/cases.py")
    except Skipped as reason:
        pytest.skip(str(reason))

"""The search for arrays that a client step reads and that were not sent to it finds them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse.linalg

import fedcore
from contract.cases import case_of
from fedcore import algorithms
from fedcore.federation.federation import Federation
from fedcore.testing.captures import captured_arrays, watched
from fedcore.testing.protocol import reads_messages_only
from fedcore.testing.subject import Subject


@pytest.fixture
def captured() -> Iterator[dict[str, Any]]:
    """Places where the steps of a run hold arrays, and the parameters of the run."""
    with watched() as found:
        yield found


def test_no_step_of_the_estimator_does(clients, captured):
    assert not algorithms.get("power_exact").labelled
    fedcore.FederatedPCA(n_components=2, algorithm="power_exact").fit(clients)
    assert len(captured["numbers"]) > 1 and captured["places"] == set()


GLOBAL = np.eye(2)


def plain(data: Any, state: Any, message: Any) -> Any:
    return message


def with_default(data: Any, state: Any, message: Any, Z: Any = GLOBAL) -> Any:
    return Z


def with_keyword(data: Any, state: Any, message: Any, *, Z: Any = (GLOBAL,)) -> Any:
    return Z


def with_global(data: Any, state: Any, message: Any) -> Any:
    return GLOBAL


KEPT: dict[str, Any] = {"Z": np.eye(2)}
other = ModuleType(__name__)  # a module beside this one
other.__dict__["BESIDE"] = {"Z": np.eye(2)}


def peek() -> Any:
    return KEPT["Z"]


class Box:
    Z = np.eye(2)


class Drawer(Box): ...


def through_a_function(data: Any, state: Any, message: Any) -> Any:
    return peek()


def through_a_class(data: Any, state: Any, message: Any) -> Any:
    return Box.Z


def through_a_base(data: Any, state: Any, message: Any) -> Any:
    return Drawer().Z


def through_a_module(data: Any, state: Any, message: Any) -> Any:
    return other.BESIDE


class Step:
    def __init__(self) -> None:
        self.Z = np.eye(2)

    def __call__(self, data: Any, state: Any, message: Any) -> Any:
        return self.Z

    def method(self, data: Any, state: Any, message: Any) -> Any:
        return self.Z


def closing_over(held: Any) -> Any:
    def inner() -> Any:
        return held

    def step(data: Any, state: Any, message: Any) -> Any:
        return inner()

    return step


@pytest.mark.parametrize(
    ("step", "place"),
    [
        (closing_over(np.eye(2)), "step.closure.inner.closure.held"),
        (closing_over({"deep": [(1, np.eye(2))]}), "step.closure.inner.closure.held.deep.0.1"),
        (closing_over(np.random.default_rng()), "step.closure.inner.closure.held"),
        (closing_over(SimpleNamespace(Z=np.eye(2))), "step.closure.inner.closure.held.Z"),
        (with_default, "step.defaults.0"),
        (with_keyword, "step.kwdefaults.Z.0"),
        (with_global, "step.globals.GLOBAL"),
        (through_a_function, "step.globals.peek.globals.KEPT.Z"),
        (through_a_class, "step.globals.Box.Z"),
        (through_a_base, "step.globals.Drawer.bases.0.Z"),
        (through_a_module, "step.globals.other.BESIDE.Z"),
        (partial(plain, box=Box()), "step.keywords.box.class.Z"),
        (Step(), "step.Z"),
        (Step().method, "step.self.Z"),
        (partial(plain, Z=np.eye(2)), "step.keywords.Z"),
    ],
)
def test_planted_arrays_are_found(step, place):
    assert captured_arrays(step) == [place]


@pytest.mark.parametrize("held", [np.median, scipy.sparse.linalg.eigsh, json.loads])
def test_functions_of_other_packages_are_not_searched(held):
    assert captured_arrays(closing_over(held)) == captured_arrays(partial(plain, held=held)) == []


def test_planted_tensors_are_found():
    torch = pytest.importorskip("torch", reason="networks need PyTorch, the extra deep")
    for planted in (torch.eye(2), torch.Generator()):
        assert captured_arrays(closing_over(planted)) == ["step.closure.inner.closure.held"]


def test_parameters_count_only_where_the_step_names_the_array():
    params = SimpleNamespace(n_components=2, start=np.eye(2))

    def settled(data: Any, state: Any, message: Any) -> Any:
        return message[: params.n_components]

    def sly(data: Any, state: Any, message: Any) -> Any:
        return (lambda: params.start)()

    assert captured_arrays(plain, params) == captured_arrays(settled, params) == []
    assert captured_arrays(partial(settled, params), params) == []
    assert captured_arrays(sly, params) == ["params.start"]


def test_a_planted_number_of_the_data_is_found():
    """‖S‖₂ is known to the server, and never sent."""

    def run(federation: Any, params: Any, rng: Any, record: Any) -> dict[str, Any]:
        def squared_norm(data: Any, state: Any, message: Any) -> float:
            return float(np.linalg.norm(data, 2) ** 2)

        def scaled(data: Any, state: Any, message: Any) -> np.ndarray:
            return data.T @ data / sigma

        sigma = float(federation.sum(squared_norm))
        V = np.linalg.qr(federation.sum(scaled)[:, : params.n_components])[0]
        record(0, basis=V)
        return {"basis": V}

    planted = replace(algorithms.get("wk2023"), run=run)
    with pytest.raises(AssertionError, match=r"step scaled reads step\.closure\.sigma"):
        reads_messages_only(Subject(planted, case_of("wk2023")))


@pytest.mark.in_process
def test_arrays_of_a_look_from_outside_are_found(clients, captured):
    federation, V = Federation(clients), np.eye(9)[:, :2]
    federation.observe(lambda data, state, message: data @ V)
    assert captured["places"] == {"step.closure.V"}
    federation.observe(lambda data, state, V: data @ V, V)
    assert len(captured["numbers"]) == 2 and captured["places"] == {"step.closure.V"}


@pytest.mark.in_process
def test_a_planted_algorithm_is_caught_on_the_road_that_the_suite_watches(clients, captured):
    """V is broadcast, but the step reads it from its closure."""
    federation = Federation(clients)
    V = np.eye(9)[:, :2]

    def project(data: Any, state: Any, message: Any) -> None:
        state.U = data @ V

    federation.broadcast(V)
    federation.local(project)
    assert captured["places"] == {"step.closure.V"}

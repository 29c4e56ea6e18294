"""Cells in coordinates of the answer: the same runs, in fewer numbers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from cells import cell
from fedcore import algorithms
from fedcore.errors import ConfigError
from fedcore.experiments.repeats import run_repeats
from fedcore.generators import spectrum
from fedcore.linalg import haar, orth
from fedcore.problems.clients import Clients, Reduction
from fedcore.problems.problem import Problem
from fedcore.recorder import Recording
from fedcore.runs import execute
from refused import refused

FROM_Z = {"inner_start": "server", "inner": "subspace_change"}  # amplifies no rounding
BY_14 = {"inner": "residual"}
COMMUTING = [n for n in algorithms.names() if algorithms.get(n).commutes is not None]


@pytest.fixture
def problem():
    clients, reference = spectrum.generate(
        np.random.default_rng(0), n_features=150, n_clients=3, n_samples=300, xi=1.1
    )
    found = Problem("x", clients)
    found.reference = reference
    return found


def run(problem, cut, **params):
    given = cell(
        "faps", {"n_components": 4, "rounds": 60, **params}, repeats=7, share_products=True,
        metrics=["kkt_residual", "subspace_distance"], iterates="all", client_iterates=True,
        stop={"kkt_residual": {"at_most": 1e-4}}, cut=cut,
    )  # fmt: skip
    return run_repeats(given, [problem])


@pytest.mark.parametrize("params", [FROM_Z, BY_14])
@pytest.mark.parametrize("cut", [1e-10, 1e-12])
def test_a_cut_run_is_the_run_up_to_what_is_dropped(problem, params, cut):
    whole, short = run(problem, None, **params), run(problem, cut, **params)
    for name in ("round", "bytes_up", "bytes_down", "scalars_up", "inner_products"):
        np.testing.assert_array_equal(short[name], whole[name])
    close = {"rtol": 0, "atol": 1e7 * cut}  # inner steps enlarge what is dropped
    for name in ("kkt_residual", "subspace_distance"):
        np.testing.assert_allclose(short[name], whole[name], **close)
    np.testing.assert_allclose(short.iterates["shared"], whole.iterates["shared"], **close)
    for name in ("X", "W"):
        ours, theirs = short.client_iterates[name], whole.client_iterates[name]
        np.testing.assert_allclose(ours, theirs, **close)


def test_the_answer_of_a_cut_run_is_that_of_the_pooled_data(problem):
    found = run(problem, 1e-9, **FROM_Z).final["basis"]
    leading = np.linalg.svd(np.vstack(problem.clients))[2][:4].T
    for basis in found:
        assert np.linalg.norm(basis - leading @ (leading.T @ basis), 2) < 0.1


def test_nothing_changes_where_no_coordinate_is_saved(problem):
    whole, same = run(problem, None, **FROM_Z), run(problem, 1e-30, **FROM_Z)
    for name in whole.columns:
        np.testing.assert_array_equal(same[name], whole[name])


@pytest.mark.parametrize("name", COMMUTING)
def test_a_method_that_says_so_commutes_with_rotations(problem, name):
    algorithm, rotation = algorithms.get(name), haar(150, 150, np.random.default_rng(1))
    start, found = orth(np.random.default_rng(2).standard_normal((150, 4))), []
    for Q in (np.eye(150), rotation):
        clients = [samples @ Q for samples in problem.clients]
        settings = algorithm.params({"n_components": 4, "start": Q.T @ start, "rounds": 5} | BY_14)
        assert algorithm.commutes(settings)
        for samples in (clients, [np.vstack([x, 0 * x]) for x in clients]):
            rotated = [haar(len(x), len(x), np.random.default_rng(3)) @ x for x in samples]
            _, output = execute(algorithm, Problem("x", rotated), settings, 0, Recording())
            found.append(Q @ output["basis"])
    for one in found[1:]:
        np.testing.assert_allclose(one, found[0], rtol=0, atol=1e-11)


def test_clients_with_many_rows_keep_no_more_than_coordinates(problem):
    many = Problem("many", [np.vstack([x] * 3) for x in problem.clients])
    whole, short = run(many, None, **FROM_Z), run(many, 1e-10, **FROM_Z)
    np.testing.assert_array_equal(short["round"], whole["round"])
    np.testing.assert_allclose(short["kkt_residual"], whole["kkt_residual"], rtol=0, atol=1e-3)
    (inside,) = vars(many.clients.kept).values()
    assert {rows for rows, _ in inside.clients.shapes} == {inside.n_features}
    assert inside.n_samples == many.n_samples == 900


@pytest.mark.parametrize("name, params", [("ssi", {}), ("faps", {"signs": "arbitrary"})])
def test_other_methods_are_refused(problem, name, params):
    given = cell(name, {"n_components": 4, "rounds": 2, **params}, cut=1e-10)
    refused(lambda: run_repeats(given, [problem]), ConfigError, "commutes")


@pytest.mark.parametrize("beside", [{"center": True}, {"audit": "leakage"}])
def test_what_reads_the_features_is_refused(problem, beside):
    given = cell("faps", {"n_components": 4, "rounds": 2}, cut=1e-10, **beside)
    refused(lambda: run_repeats(given, [problem]), ConfigError, "leave out 'cut'")


def test_facts_about_reduced_rows_stay(problem):
    known = Reduction((1000, 2000, 3000), 5.0)
    clients = Clients(list(problem.clients), reduction=known)
    factors = Problem("factors", clients)
    run(factors, 1e-10, **FROM_Z)
    (inside,) = vars(factors.clients.kept).values()
    assert inside.clients.reduction == known and inside.n_samples == 6000


def test_single_precision_stays_single(problem):
    single = Problem("single", [x.astype(np.float32) for x in problem.clients])
    whole, short = run(single, None, **FROM_Z), run(single, 1e-6, **FROM_Z)
    each = [found["bytes_up"][0, 1] / found["scalars_up"][0, 1] for found in (whole, short)]
    assert each == [4, 4]


def rounds_as_printed(problem, cut, *, share_products=True, tolerance=1e-2):
    """Rounds of FAPS as printed from sixty starts, which follow the rounding of each start."""
    given = cell(
        "faps", {"n_components": 4, "rounds": 300, "inner_steps": 1000, "tolerance": tolerance},
        repeats=60, share_products=share_products, metrics=["kkt_residual"],
        stop={"kkt_residual": {"at_most": 1e-4}}, cut=cut,
    )  # fmt: skip
    return run_repeats(given, [problem]).last("round")


def test_what_follows_rounding_has_the_same_distribution(problem):
    whole = rounds_as_printed(problem, None)
    for other in (
        rounds_as_printed(problem, 1e-12),
        rounds_as_printed(problem, None, share_products=False),
    ):
        assert scipy.stats.ks_2samp(whole, other, method="asymp").pvalue > 1e-3
    other = rounds_as_printed(problem, None, tolerance=1e-4)
    assert scipy.stats.ks_2samp(whole, other, method="asymp").pvalue < 1e-3  # the test can tell

"""Methods for networks become one another where their papers say so."""

from __future__ import annotations

import numpy as np
import pytest

from contract.networks import BODY, PARAMS
from contract.test_networks import needs_torch, run
from fedcore import algorithms
from fedcore.federation.federation import Federation
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.recorder import Recorder
from fedcore.testing.samples import images

ONE = {"problem": Problem("one", images((11,))), "measure": [], "participation": 1}


def last(name, **options):
    return [w.tobytes() for w in run(name, **options).networks[-1]]


@pytest.mark.parametrize("participation", [0.5, 1])
def test_fedprox_without_a_penalty_is_fedavg(participation):
    options = {"participation": participation, "epochs": 2, "fine_tune": 3}
    assert last("fedprox", strength=0.0, **options) == last("fedavg", **options)
    assert last("fedprox", strength=0.5, **options) != last("fedavg", **options)


@pytest.mark.parametrize("participation", [0.5, 1])
def test_apfl_that_mixes_nothing_in_is_fedavg(participation):
    options = {"participation": participation, "epochs": 2}
    mixed, averaged = run("apfl", mixture=0.0, **options), run("fedavg", **options)
    assert mixed.output["parameters"].tobytes() == averaged.output["parameters"].tobytes()
    assert [w.tobytes() for w in mixed.networks[-1]] == last("fedavg", **options) * 4


@pytest.mark.parametrize("participation", [0.5, 1])
def test_apfl_that_mixes_all_in_is_local_only(participation):
    options = {"participation": participation}
    assert last("apfl", mixture=1.0, **options) == last("local_only", **options)


def test_fed_mtl_without_a_penalty_is_local_only():
    """With the penalty of Table 1 it is not: each has a training of its own."""
    assert last("fed_mtl", strength=0.0) == last("local_only")
    assert last("fed_mtl", strength=1e-7) != last("local_only")


@pytest.mark.parametrize("participation", [0.5, 1])
def test_ditto_without_a_penalty_is_local_only_beside_fedavg(participation):
    options = {"participation": participation, "epochs": 2}
    ditto = run("ditto", strength=0.0, **options)
    assert [w.tobytes() for w in ditto.networks[-1]] == last("local_only", **options)
    averaged = run("fedavg", **options).output["parameters"]
    assert ditto.output["parameters"].tobytes() == averaged.tobytes()


def test_one_client_is_plain_descent_with_every_method_that_trains_all_at_once():
    local = last("local_only", **ONE)
    for name in ("fedavg", "fedper", "lg_fedavg"):
        assert last(name, **ONE) == local
    assert last("ditto", strength=0.0, **ONE) == local


def test_scaffold_does_not_correct_clients_that_do_not_differ():
    """Their variates are the server's, so that every round is one of FedAvg."""
    same = images((8,))
    alike = Clients(same[:] * 4, labels=list(same.labels) * 4)
    options = {"problem": Problem("alike", alike, held_out=alike), "batch": None}
    corrected = run("scaffold", participation=1, **options).output["parameters"]
    averaged = run("fedavg", participation=1, **options).output["parameters"]
    # The variates are differences of numbers near 1, over a step of 0.2.
    np.testing.assert_allclose(corrected, averaged, rtol=0, atol=1e-14)


def test_scaffolds_server_has_the_mean_of_the_clients_variates():
    needs_torch()
    algorithm, settings = algorithms.get("scaffold"), {**PARAMS, "rounds": 6}
    federation = Federation(images(), 5, check=False, labelled=True)
    recorder = Recorder(Problem("p", images()), federation.ledger)
    found = algorithm.run(federation, algorithm.params(settings), federation.rng, recorder)
    kept = federation.client_state("variate")
    np.testing.assert_allclose(found["variate"], np.mean(kept, axis=0), rtol=0, atol=1e-14)
    assert np.abs(found["variate"]).max() > 1e-3


def test_the_body_is_the_same_bits_before_and_after_fine_tuning():
    tuned = run("fedavg", fine_tune=5)
    before, after = tuned.networks[-2][0], tuned.networks[-1]
    for w in after:
        assert w[:BODY].tobytes() == before[:BODY].tobytes()
        assert w[BODY:].tobytes() != before[BODY:].tobytes()
    assert tuned.columns["fine_tuned"].tolist() == [0, 0, 0, 0, 5]
    assert tuned.columns["round"].tolist() == [0, 1, 2, 3, 3]
    assert np.diff(tuned.columns["scalars_down"])[-1] == 4 * len(before)


def test_fedper_is_fedrep_with_head_and_body_together():
    """With one batch a round and no momentum, a step on both is a step on each at the same point.

    FedRep takes its step on the body after that on the head. Their bodies therefore agree where
    the head does not move, and their heads where one head epoch is compared.
    """
    options = {**ONE, "batch": None, "momentum": 0.0, "rounds": 1}
    together = run("fedper", **options).networks[-1][0]
    apart = run("fedrep", head_epochs=1, **options).networks[-1][0]
    still = run("fedrep", head_epochs=0, **options).networks[-1][0]
    np.testing.assert_allclose(together[BODY:], apart[BODY:], rtol=0, atol=1e-15)
    np.testing.assert_allclose(together[:BODY], still[:BODY], rtol=0, atol=1e-15)

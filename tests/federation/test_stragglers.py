"""Clients that do not answer in time: sums, ledger, seeds, and what cannot go on without one."""

from __future__ import annotations

import numpy as np
import pytest

from fedcore import algorithms, metrics
from fedcore.algorithms.local_power import aggregate
from fedcore.api import execute
from fedcore.errors import InputError, LateError
from fedcore.experiments import build
from fedcore.experiments.cell import run_repeats
from fedcore.federation.federation import Federation
from fedcore.federation.stragglers import StragglingFederation
from fedcore.federation.transcript import Transcript
from fedcore.history import History
from fedcore.problems import storage
from fedcore.problems.problem import Problem
from fedcore.reports import comparison, terminal
from fedcore.reports.history_summary import ending

CLIENTS = [np.full((2, 3), float(10**i)) for i in range(5)]
CELL = {
    "paper": "p", "experiment": "e", "name": "late-x", "problem": "late", "repeats": 2,
    "metrics": ["subspace_distance"], "iterates": "last", "seed": 3,
}  # fmt: skip


def own(data, state, message):
    """Client step: its number, which it also counts."""
    state.visits = getattr(state, "visits", 0) + 1
    return data[0]


def late(share=0.4, seed=0, clients=CLIENTS, **options):
    return StragglingFederation(clients, seed, share=share, **options)


def problem(share, clients=None):
    rng = np.random.default_rng(0)
    made = Problem("late", clients or [rng.standard_normal((20, 6)) for _ in range(5)])
    made.stragglers = share
    return made


def test_the_sum_of_those_that_answer_is_that_of_all_in_expectation():
    exact = sum(client[0] for client in CLIENTS)
    draws = np.array([late(seed=seed).sum(own) for seed in range(3000)])
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - exact) < 4 * error).all() and (error > 0).all()
    unscaled = draws.mean(axis=0) * 3 / 5
    assert (np.abs(unscaled - exact) > 4 * error).all()  # the test can fail
    assert np.unique(draws[:, 0]).size > 5


@pytest.mark.parametrize("how", ["of", "mean", "twice"])
def test_so_are_means_and_sums_of_some(how):
    of = {"of": [4, 1, 0, 2], "mean": None, "twice": [0, 0, 3, 2, 1]}[how]
    asked = range(5) if of is None else of
    ask = "sum" if how == "of" else "mean"
    draws = np.array([getattr(late(seed=s), ask)(own, of=of)[0] for s in range(3000)])
    exact = sum(CLIENTS[i][0, 0] for i in asked) / (1 if ask == "sum" else len(asked))
    assert abs(draws.mean() - exact) < 4 * draws.std() / np.sqrt(len(draws))


def test_the_share_holds_on_average_where_it_is_no_whole_number():
    there = []
    for seed in range(2000):
        federation = late(0.25, seed)
        federation.sum(own)
        there.append(len(federation.answered))
    assert set(there) == {3, 4}
    assert abs(np.mean(there) - 3.75) < 4 * np.std(there) / np.sqrt(len(there))


def test_the_ledger_counts_what_was_sent_and_only_that():
    federation, seen = late(transcript=(transcript := Transcript())), []
    federation.broadcast(np.zeros(7))
    for _ in range(20):
        federation.sum(own)
        seen.append(tuple(federation.answered))
    replies = federation.gather(own, partial=True)
    assert len(replies) == 3 == len(federation.answered)
    ledger = federation.ledger
    assert (ledger.rounds, ledger.scalars_up, ledger.bytes_up) == (21, 21 * 3 * 3, 21 * 3 * 3 * 8)
    assert ledger.scalars_down == 5 * 7  # the server sends to all
    assert len(transcript.exchanges) == 21 * 3
    assert len(set(seen)) > 5  # drawn anew
    visits = federation.client_state("visits")  # a late client runs no step
    assert sum(visits) == 21 * 3
    assert visits == [sum(i in one for one in [*seen, federation.answered]) for i in range(5)]


def test_the_same_seed_meets_the_same_stragglers_and_another_one_others():
    def met(seed):
        federation, found = late(seed=seed), []
        for _ in range(8):
            federation.gather(own, partial=True)
            found.append(list(federation.answered))
        return found

    assert met(1) == met(1) != met(2)


def test_a_share_of_zero_changes_no_byte():
    for share in (0, 0.0):
        federation, plain = late(share), Federation(CLIENTS)
        for one in (federation, plain):
            one.broadcast(np.ones(3))
        assert federation.sum(own).tobytes() == plain.sum(own).tobytes()
        assert np.array_equal(federation.gather(own), plain.gather(own))
        assert federation.ledger == plain.ledger
        assert list(federation.answered) == list(plain.answered) == [0, 1, 2, 3, 4]
        assert federation.rng.random() == plain.rng.random()
    integers = late(0).sum(lambda data, state, message: np.array([3]))
    assert integers.dtype == np.int64


@pytest.mark.parametrize("share", [1, 1.0, -0.1, float("nan"), "0.2", True, None])
def test_a_wrong_share_has_a_sentence(share):
    with pytest.raises(InputError, match="stragglers must be a finite number of at least 0 and"):
        late(share)
    spec = {"generator": "spectrum", "params": {}, "stragglers": share}
    with pytest.raises(InputError, match="stragglers must be"):
        build.check(spec)


def test_a_method_that_reads_single_replies_says_that_it_cannot_go_on():
    with pytest.raises(LateError, match=r"the step own cannot go on without a client: client \d"):
        late().gather(own)
    with pytest.raises(LateError, match="asks client 3 and nobody else"):
        for seed in range(50):
            late(0.9, seed).sum(own, of=[3])


def test_a_state_that_a_late_client_has_not_made_is_named():
    federation = late()
    federation.sum(own)
    with pytest.raises(LateError, match=r"state\.visits of one that was late is missing"):
        federation.client_state("visits")
    assert federation.client_state("visits", of=federation.answered) == [1, 1, 1]

    def reads(data, state, message):
        return state.visits

    with pytest.raises(LateError, match=r"state\.visits"):
        for _ in range(9):
            federation.gather(reads, partial=True)

    def wrong(data, state, message):
        return data.no_such_attribute

    with pytest.raises(AttributeError, match="no_such_attribute"):  # an error of another kind
        federation.gather(wrong, partial=True)


def test_a_state_that_nobody_makes_is_no_fault_of_the_late():
    def misspelt(data, state, message):
        return state.visit

    federation = late()
    federation.sum(own)
    with pytest.raises(AttributeError, match=r"state\.visit is missing"):
        federation.sum(misspelt)
    with pytest.raises(AttributeError, match=r"state\.visit is missing"):
        federation.client_state("visit")


def test_the_mean_of_all_samples_needs_every_client():
    with pytest.raises(InputError, match="needs every client"):
        late().center()


def test_a_late_client_is_charged_nothing_and_the_others_their_whole_noise():
    def noisy(data, state, message):
        return state.privacy.gaussian(data[0], sensitivity=1.0, noise_multiplier=2.0)

    federation = late(noise=np.random.SeedSequence(0))
    federation.protect(delta=1e-5, neighbours="replace_one")
    total = federation.sum(noisy)
    charged = [sum(account.events.values()) for account in federation.ledger.privacy.accounts]
    assert charged == [int(i in federation.answered) for i in range(5)]
    plain = Federation(CLIENTS, noise=np.random.SeedSequence(0))
    plain.protect(delta=1e-5, neighbours="replace_one")
    same = plain.sum(noisy, of=federation.answered)
    assert plain.ledger.privacy.epsilon() == federation.ledger.privacy.epsilon()
    np.testing.assert_allclose(total, same * 5 / 3)  # noise is scaled with the sum, never less

    # Averaged over seeds: each answer has its own noise of deviation 2, and 5/3 of three of them.
    noise = [
        run.sum(noisy, of=range(5))[0] - 5 / 3 * sum(CLIENTS[i][0, 0] for i in run.answered)
        for run in map(private, range(600))
    ]
    assert np.std(noise) == pytest.approx(5 / 3 * 2 * np.sqrt(3), rel=0.15)


def private(seed):
    federation = late(seed=seed, noise=np.random.SeedSequence(seed))
    federation.protect(delta=1e-5, neighbours="replace_one")
    return federation


def test_a_run_meets_the_share_of_its_problem(tmp_path):
    def run(share, name="ssi", **params):
        algorithm = algorithms.get(name)
        settings = algorithm.params({"n_components": 2, **params})
        return execute(algorithm, problem(share), settings, 4, [metrics.get("subspace_distance")])

    plain, again = (run(share, rounds=5)[0] for share in (0.0, 0.0))
    some = run(0.4, rounds=5)[0]
    assert some.ledger.scalars_up == plain.ledger.scalars_up * 3 // 5
    assert some.rows[-1]["subspace_distance"] != plain.rows[-1]["subspace_distance"]
    assert plain.rows == again.rows
    assert some.rows == run(0.4, rounds=5)[0].rows
    with pytest.raises(LateError, match="asks client"):
        run(0.9, "private_oja", epsilon=None)
    storage.save(problem(0.4), tmp_path / "late.h5")
    assert storage.load(tmp_path / "late.h5").stragglers == 0.4
    storage.save(problem(0.0), tmp_path / "none.h5")
    assert storage.load(tmp_path / "none.h5").stragglers == 0.0


def test_a_cell_that_cannot_go_on_has_a_history_that_says_so(tmp_path):
    cell = {**CELL, "algorithm": "private_oja", "params": {"n_components": 2, "epsilon": None}}
    history = run_repeats(cell, [problem(0.9)])
    history.save(tmp_path / "h.h5")
    history = History.load(tmp_path / "h.h5")
    assert "cannot go on without a client" in history.about["refused"]
    assert np.isnan(history["subspace_distance"]).all() and history.repeats == 2
    assert history.about["problem"]["stragglers"] == 0.9
    told = terminal.outcome(history)
    assert "NO RESULT: this method cannot go on" in told and "0.9 of the clients late; 2" in told
    ssi = {**CELL, "algorithm": "ssi", "params": {"n_components": 2, "rounds": 3}}
    assert "refused" not in run_repeats(ssi, [problem(0.4)]).about
    assert "stragglers" not in run_repeats(ssi, [problem(0.0)]).about["problem"]


def test_reports_say_that_there_is_no_result_and_not_that_it_diverged(tmp_path, recwarn):
    ssi = {**CELL, "algorithm": "ssi", "params": {"n_components": 2, "rounds": 3}}
    cell = {**CELL, "algorithm": "private_oja", "params": {"n_components": 2, "epsilon": None}}
    refused, other = run_repeats(cell, [problem(0.9)]), run_repeats(ssi, [problem(0.0)])
    assert "DIVERGED" not in terminal.outcome(refused)
    found = ending(refused)
    assert "cannot go on without a client" in found["refused"] and "diverged" not in found
    assert "refused" not in ending(other) and ending(other)["diverged"] == 0
    histories = {"private_oja": refused, "ssi": other}
    head, *lines = comparison.table(histories).splitlines()
    assert terminal.outcome(next(iter(histories.values()))).splitlines()[0].endswith(head)
    (line,) = (one for one in lines if "private_oja" in one)
    assert "no result: this method cannot go on without a client" in line
    assert "diverged" not in line
    comparison.draw(tmp_path / "both", histories)
    assert not [str(warning.message) for warning in recwarn]


@pytest.mark.parametrize("alignment", ["none", "procrustes"])
def test_weights_are_those_of_the_clients_that_answer(alignment):
    clients = problem(0).clients
    Z, weights = np.linalg.qr(np.ones((6, 2)) + np.eye(6)[:, :2])[0], {0: 0, 1: 2, 3: 1, 4: 5}
    for seed in range(9):
        federation = late(0.5, seed, clients)
        federation.broadcast(Z)
        total = aggregate(federation, 1, alignment, weights=weights)
        there = federation.answered
        assert len(there) == 2
        exact = sum(weights[i] * clients[i].T @ clients[i] @ Z for i in there)
        np.testing.assert_allclose(total, exact)
    with pytest.raises(LateError, match="all clients that were drawn are late"):
        for seed in range(9):
            federation = late(0.5, seed, clients)
            federation.broadcast(Z)
            aggregate(federation, 1, alignment, weights={0: 0, 1: 1})

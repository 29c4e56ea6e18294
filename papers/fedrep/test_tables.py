"""Tables of `fedrep`, on made-up histories of single clients."""

from __future__ import annotations

import numpy as np
import pytest

from fedcore.history import History
from fedcore.reports import tables
from fedcore.repro.config import claims as claims_files
from fedcore.repro.tables.rows import chosen
from fedcore.repro.verdicts.verdicts import judge
from fedrep import tables as report
from folder import Folder

ROUNDS, CLIENTS = 12, 2
PARAMS = {"model": "tiny_mlp", "rounds": ROUNDS, "participation": 0.5}


class Made(Folder):
    """Results that hold made-up histories."""

    def made(self, algorithm, accuracy, *, experiment="table1", variant="default", seed=1,
             setting="s", tuned=None, diverged=False, params=None, tags=None,
             device=None):  # fmt: skip
        """Add a run whose clients have ``accuracy``, of shape (records, clients) or one number."""
        sent = 100
        records = ROUNDS + 1 + (tuned is not None)
        each = np.empty((1, records, CLIENTS))
        each[0, : ROUNDS + 1] = accuracy
        if tuned is not None:
            each[0, -1] = tuned
        count = np.arange(records)[None]
        columns = {
            "iteration": count, "test_accuracy": each.mean(axis=2),
            "diverged": (count == count.max()) * float(diverged),
            "scalars_up": sent * count, "scalars_down": 2 * sent * count + 5,
            "bytes_up": 4 * sent * count, "bytes_down": 8 * sent * count,
        }  # fmt: skip
        about = {"problem": {"n_clients": CLIENTS, "status": "rebuilt"}}
        about |= {"device": device} if device else {}
        history = History(columns, clients={"test_accuracy": each}, about=about)
        problem = f"{setting}_{seed}"
        self.problems.setdefault(problem, {})
        more = {"fine_tune": 10} if tuned is not None else {}
        self.add(experiment, algorithm, problem, variant, history=history,
                 params=more | (params or {}), repeats=1,
                 tags={"setting": setting, "seed": seed} | (tags or {}))  # fmt: skip

    def results(self):
        return super().results("table1", "code", "everyone", "alone", "fig5", "fig6")

    def newcomers(self, last, *, tags=None, problem="f", status="rebuilt"):
        """Add runs of Figure 6: newcomers' accuracies, 0.1 at first and then those of `last`."""
        tags = {"setting": problem, "seed": 1} | (tags or {})
        self.problems.setdefault(problem, {})
        for algorithm, value in last.items():
            each = np.array([[[0.1, 0.1], [value - 0.05, value + 0.05]]])
            columns = {"iteration": np.array([[0]]), "diverged": np.array([[0.0]])}
            about = {"problem": {"n_clients": CLIENTS, "status": status}}
            history = History(columns, final={report.NEWCOMERS: each}, about=about)
            self.add("fig6", algorithm, problem, history=history, repeats=1, tags=tags)


@pytest.fixture
def folder(tmp_path):
    return Made(tmp_path, "fedrep", PARAMS, ["test_accuracy"])


def test_the_last_ten_rounds_count_and_those_that_were_not_measured_do_not(folder):
    each = np.full((ROUNDS + 1, CLIENTS), np.nan)
    each[0:3] = 0.0  # before the last ten rounds, 3 to 12
    each[3], each[ROUNDS] = (0.2, 0.4), (0.6, 0.8)
    folder.made("fedavg", each, tuned=(0.9, 1.0), seed=3)
    rows = report.accuracy(folder.results())
    assert [(r["method"], r["repeat"]) for r in rows] == [("FedAvg", 3), ("FedAvg+FT", 3)]
    np.testing.assert_allclose([r["accuracy"] for r in rows], [50.0, 95.0])
    (first, tuned) = report.clients(folder.results())
    np.testing.assert_allclose([first["mean"], first["deviation"]], [50.0, 10.0])
    np.testing.assert_allclose([tuned["mean"], tuned["deviation"]], [95.0, 5.0])


def test_a_run_that_diverged_has_no_accuracy(folder):
    folder.made("fedper", 0.5, diverged=True)
    (row,) = report.accuracy(folder.results())
    assert np.isnan(row["accuracy"]) and row["diverged"] is True


def whole_table(folder, **changes):
    special = {"fedavg": 0.4, "scaffold": 0.3, "fedrep": 0.8}
    accuracies = dict.fromkeys(report.METHODS, 0.5) | special
    for algorithm, value in (accuracies | changes).items():
        tuned = {"fedavg": 0.85, "fedprox": 0.7, "scaffold": 0.6}.get(algorithm)
        folder.made(algorithm, value, tuned=tuned)
    return report.orderings(folder.results())


def test_orderings(folder):
    (row,) = whole_table(folder)
    assert row["best"] == "FedAvg+FT" and row["fedavg_tuned_first"]
    assert row["fedavg_above_scaffold"] and row["personalized_below"]
    names = ("behind", "mtl_behind", "tuned_above", "tuned_over_personalized", "untuned_above")
    expected = [5.0, 35.0, 20.0, 215 / 3 - 50, -10.0]
    np.testing.assert_allclose([row[name] for name in names], expected)


def test_other_results_turn_the_orderings(folder):
    (row,) = whole_table(folder, scaffold=0.45)
    assert not row["fedavg_above_scaffold"]


@pytest.mark.parametrize(
    "algorithm", ["fedper", "fed_mtl", "per_fedavg", "lg_fedavg", "apfl", "l2gd", "ditto"]
)
def test_one_personalized_method_above_fedrep_is_enough(folder, algorithm):
    (row,) = whole_table(folder, **{algorithm: 0.81})
    assert row["personalized_below"] is False


def test_methods_that_are_not_personalized_may_be_above_fedrep(folder):
    (row,) = whole_table(folder, local_only=0.9, ditto=np.nan)
    assert row["personalized_below"] is True


def test_how_far_methods_are_above_fedavg_is_known_without_the_others(folder):
    folder.made("fedrep", 0.8)
    folder.made("fedavg", 0.4, seed=2)
    folder.made("fedrep", 0.7, seed=2)
    folder.made("fedprox", 0.45, seed=2, tuned=0.9)
    folder.made("fedavg", 0.5, setting="t")
    folder.made("fedrep", 0.6, setting="t")
    rows = report.above_fedavg(folder.results())
    assert [(r["setting"], r["seed"], r["method"]) for r in rows] == [
        ("s", 2, "FedProx"), ("s", 2, "FedRep"), ("t", 1, "FedRep"),
    ]  # fmt: skip
    np.testing.assert_allclose([r["above"] for r in rows], [5.0, 30.0, 10.0])
    np.testing.assert_allclose([r["ratio"] for r in rows], [45 / 40, 70 / 40, 60 / 50])
    assert {r["least"] for r in rows} == {None}  # nothing is printed of these settings
    of_fedrep = [r["repeat"] for r in chosen(rows, method="FedRep")]
    assert len(set(of_fedrep)) == 2  # other seeds, not repeats of one


def test_the_gain_over_fedavg_is_held_against_the_root_of_the_printed_one(folder):
    folder.made("fedrep", 0.8, setting="cifar10-100-2")
    folder.made("fedavg", 0.4, setting="cifar10-100-2")
    (row,) = report.above_fedavg(folder.results())
    assert row["least"] ** 2 == pytest.approx(87.70 / 42.65)


def test_a_method_that_diverged_is_not_the_best_and_helps_nobody(folder):
    folder.made("fedavg", 0.4, tuned=np.nan, diverged=True)
    folder.made("scaffold", 0.3, tuned=0.6)
    for algorithm in report.METHODS.keys() - {"fedavg", "scaffold"}:
        folder.made(algorithm, 0.5, tuned=0.7 if algorithm == "fedprox" else None)
    (row,) = report.orderings(folder.results())
    assert row["best"] == "FedProx+FT" and row["behind"] == pytest.approx(20.0)
    assert np.isnan(row["tuned_above"]) and row["fedavg_tuned_first"] is False
    assert row["fedavg_above_scaffold"]
    (row,) = chosen(report.above_fedavg(folder.results()), method="FedRep")
    assert row["above"] == pytest.approx(10.0)


def test_readings_and_rows_that_are_not_printed_have_no_part_in_the_orderings(folder):
    folder.made("l2gd", 0.99, variant="everyone")
    folder.made("per_fedavg", 0.5, tuned=0.98)
    special = {"fedavg": 0.85, "fedprox": 0.7, "scaffold": 0.6}
    for algorithm in report.METHODS.keys() - {"per_fedavg"}:
        folder.made(algorithm, 0.5, tuned=special.get(algorithm))
    step, head = report.orderings(folder.results())
    assert step["best"] == "FedAvg+FT" and step["behind"] == pytest.approx(35.0)
    # With its head trained before the test PerFedAvg is another method of the same row.
    assert head["best"] == "PerFedAvg" and head["behind"] == pytest.approx(48.0)
    assert [row["adaptation"] for row in (step, head)] == ["step", "head"]


def test_seeds_of_all_settings_count_by_themselves(folder):
    for setting, seed in (("cifar-s", 1), ("cifar-s", 2), ("t", 1)):
        for algorithm in report.METHODS:
            tuned = 0.6 if algorithm in ("fedavg", "fedprox", "scaffold") else None
            folder.made(algorithm, 0.5, tuned=tuned, setting=setting, seed=seed)
    rows = report.orderings(folder.results())
    assert [(r["setting"], r["seed"], r["repeat"], r["cifar"]) for r in rows] == [
        ("cifar-s", 1, 0, True), ("cifar-s", 2, 1, True), ("t", 1, 2, False),
    ]  # fmt: skip


def test_a_fine_tuning_that_diverges_leaves_the_network_before_it(folder):
    folder.made("fedavg", 0.4, tuned=np.nan, diverged=True)
    before, after = report.accuracy(folder.results())
    assert before["accuracy"] == pytest.approx(40.0) and np.isnan(after["accuracy"])
    folder.made("local_only", 0.3)
    _, after = chosen(report.clients(folder.results()), algorithm="fedavg")
    assert np.isnan(after["gaining"])


def test_the_start_is_not_one_of_the_last_rounds(folder):
    each = np.full((ROUNDS + 1, CLIENTS), 0.5)
    each[0] = 0.0
    folder.made("fedrep", each, params={"rounds": 4})
    (row,) = report.accuracy(folder.results())
    assert row["accuracy"] == pytest.approx(50.0)


def test_no_ordering_without_all_methods(folder):
    folder.made("fedrep", 0.5)
    assert report.orderings(folder.results()) == []


def test_clients_that_gain_over_their_own_network(folder):
    folder.made("local_only", (0.5, 0.6))
    folder.made("fedrep", (0.7, 0.6))
    (row,) = chosen(report.clients(folder.results()), method="FedRep")
    assert row["gaining"] == 0.5


@pytest.mark.parametrize(
    ("errors", "rise", "last"),
    [
        ((0.5, 0.6, 0.6), 0.0, -10.0),
        ((0.5, 0.7, 0.4), 30.0, 10.0),
        ((0.5, np.nan, 0.4), np.nan, 10.0),
    ],
)
def test_monotone(folder, errors, rise, last):
    for epochs, value in zip((10, 1, 5), (errors[2], *errors[:2]), strict=True):
        folder.made("fedrep", value, experiment="fig5", variant=f"e{epochs}",
                    params={"head_epochs": epochs}, tags={"epochs": epochs})  # fmt: skip
    folder.made("fedrep", 0.55)
    (row,) = report.monotone(folder.results())
    assert row["rise"] == pytest.approx(rise, nan_ok=True)
    assert row["finite"] is np.isfinite(rise).item()
    assert row["last_above_first"] == pytest.approx(last)
    assert row["worse"] is (errors[2] < 0.55)  # at ten epochs of the head


SEVEN = dict(zip(report.FIGURE6, (0.9, 0.8, 0.7, 0.85, 0.5, 0.5, 0.5), strict=True))
STAND_IN = {"stands_for": "letters"}


def test_newcomers_by_epochs_and_how_far_fedrep_is_above(folder):
    folder.newcomers(SEVEN, tags=STAND_IN)
    rows = report.newcomers(folder.results())
    assert len(rows) == 2 * 7 and {row["status"] for row in rows} == {"rebuilt"}
    (first, last) = chosen(rows, method="LG-Fed")
    assert (first["epoch"], last["epoch"]) == (0, 1)
    assert last["accuracy"] == pytest.approx(85.0) and last["deviation"] == pytest.approx(5.0)
    (order,) = report.newcomer_orders(folder.results())
    assert order["fedrep_above"] == pytest.approx(5.0)
    assert order["per_fedavg_above"] == pytest.approx(-20.0)
    assert order["status"] == "rebuilt" and order["epochs"] == 1
    shown = report.by_epochs(rows)
    assert len(shown) == 7 and shown[0]["after 0"] == pytest.approx(10.0)


def test_letters_take_the_place_of_their_stand_in(folder):
    folder.newcomers(SEVEN, tags=STAND_IN)
    folder.newcomers(SEVEN | {"fedrep": 0.95}, problem="letters", status="official")
    (order,) = report.newcomer_orders(folder.results())
    assert (order["problem"], order["status"]) == ("letters", "official")
    assert order["fedrep_above"] == pytest.approx(10.0)


def test_newcomers_of_methods_that_diverged_or_are_missing(folder):
    folder.newcomers(SEVEN | {"lg_fedavg": np.nan})
    (order,) = report.newcomer_orders(folder.results())
    assert order["fedrep_above"] == pytest.approx(10.0)
    folder.newcomers({"fedrep": np.nan}, problem="other")
    assert len(report.newcomer_orders(folder.results())) == 1


@pytest.mark.parametrize("stand_in", [True, False])
def test_a_stand_in_has_no_part_in_the_first_word_of_figure_6(folder, tmp_path, stand_in):
    setting = "fashion-150-3" if stand_in else "femnist-150-3"
    tags = {"setting": setting} | (STAND_IN if stand_in else {})
    folder.newcomers(SEVEN, tags=tags, status="rebuilt")
    rows = report.newcomer_orders(folder.results())
    rows = [row | {"repeat": i} for i in range(6) for row in rows]
    tables.write(rows, tmp_path / "made" / "newcomer_orders.tsv", caption="")
    claims = claims_files.read(report.CLAIMS)
    claims["items"] = [c for c in claims["items"] if c["id"] == "fig6-fedrep-better"]
    claims["software"] = []
    (verdict,) = judge("fedrep", claims, tmp_path / "made", not_run={}, stand_ins=False)
    on_clothes, on_letters = (bool(reading.state) for reading in verdict.readings)
    assert (on_clothes, on_letters) == (stand_in, not stand_in)
    assert verdict.word == "not run"  # fewer tests replace what is printed, too


@pytest.mark.parametrize(("more", "verdict"), [(0.0, "holds"), (0.1, "fails"), (-1.0, "fails")])
def test_no_number_is_sent_beside_those_of_the_network(tmp_path, more, verdict):
    """One number more in a round of ten participants is a tenth of one for each of them."""
    claims = claims_files.read(report.CLAIMS) | {"items": []}
    sent = {
        cell["select"]["where"]["method"]: float(item["printed"])
        for item in claims["software"]
        for cell in item["readings"][0]["cells"].values()
    }
    rows = [
        {"setting": "cifar10-100-2", "repeat": 1, "method": name, "up_per_round": number + more}
        for name, number in sent.items()
    ]
    tables.write(rows, tmp_path / "communication.tsv", caption="")
    found = judge("fedrep", claims, tmp_path, not_run={}, stand_ins=False)
    assert len(found) == 6 and {v.word for v in found} == {verdict}


def test_communication_counts_participants_and_not_the_fine_tuning(folder):
    folder.made("fedavg", 0.5, tuned=1.0)
    (row,) = report.communication(folder.results())
    assert (row["up_per_round"], row["down_per_round"]) == (100.0, 200.0)
    assert row["bytes"] == 12 * 100 * ROUNDS


def test_printed_values_are_those_of_the_claims():
    printed = report.printed()
    assert printed["FedRep"]["cifar10-100-2"] == 87.70
    assert printed["SCAFFOLD+FT"]["femnist-150-3"] == 52.11
    assert printed.keys() == report.TABLE1
    assert {*map(tuple, printed.values())} == {tuple(report.COLUMNS)}

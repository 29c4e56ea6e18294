"""Tables of `faps`: from made-up histories with answers by hand, and from tiny runs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from reports.folder import Folder

from fedcore.history import History
from fedcore.reports import tables, verdicts
from fedcore.reports.papers import faps as report

MEASURES = ["kkt", "kkt_residual", "captured", "singular_value_error"]
SIGMA = np.sqrt([1.0, 0.5, 0.4, 0.1])  # λ₂ = 0.5, λ₃ = 0.4: g = 0.1 at p = 2


class MadeUp(Folder):
    """A folder of results, to which made-up histories are added."""

    def add(
        self, experiment, algorithm, problem="one", variant="default", params=(), twin=None,
        tags=(), **columns,
    ):  # fmt: skip
        arrays = {name: np.array(values, dtype=float) for name, values in columns.items()}
        shape = next(iter(arrays.values())).shape
        history = History(made_up(shape) | arrays, reference={"singular_values": SIGMA})
        if twin is not None:
            residual = np.array(twin, dtype=float)
            history.twin = made_up(residual.shape) | {"kkt_residual": residual}
            history.twin["inner_products"] = 4 * history.twin["round"]
        history.about = {"problem": {"n_clients": 4, "n_features": 50}}
        self.problems[problem] = {"label": problem}
        super().add(
            experiment, algorithm, problem, variant, params=dict(params), tags=dict(tags),
            history=history,
        )  # fmt: skip

    def results(self):
        return super().results(*report.EXPERIMENTS, "fig1a", "fig1b")


def made_up(shape):
    """Return columns of a history in which nothing moves but the rounds."""
    rounds = np.tile(np.arange(float(shape[1])), (shape[0], 1))
    return {name: np.ones(shape) for name in (*MEASURES, "penalty")} | {
        "iteration": rounds.astype(int), "round": rounds, "bytes_up": 8 * rounds,
    }  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    return MadeUp(tmp_path, "faps", {"n_components": 2}, MEASURES)


def only(rows, **where):
    """Return the one row that has these values."""
    (row,) = [r for r in rows if all(r[k] == v for k, v in where.items())]
    return row


def test_rounds_are_counted_under_every_rule(folder):
    folder.add(
        "table4", "ssi",
        kkt_residual=[[1, 1e-3, 1e-4, 1e-6, 1e-7]],
        kkt=[[1, 4e-6, 3e-6, 2e-6, 1e-6]],
        captured=[[1, 2, 3, 4, 4 * (1 + 1e-11)]],
    )  # fmt: skip
    rows = report.counts(folder.results())
    assert [only(rows, rule=rule)["rounds"] for rule in report.RULES] == [2, 1, 4]
    assert only(rows, rule="kkt")["kkt"] == 3e-6
    assert only(rows, rule="kkt")["bytes_up"] == 16


def test_a_stop_that_is_never_reached_is_no_number(folder):
    folder.add("fig4", "faps", kkt_residual=[[1, 0.5]], inner_products=[[0, 8]])
    row = only(report.counts(folder.results()), rule="kkt")
    assert all(math.isnan(row[name]) for name in ("rounds", "products", "kkt", "bytes_up"))


def test_products_with_a_clients_data(folder):
    """FAPS counts them over all four clients; LocalPower makes 8 + 4 + 2 + 1 in four rounds."""
    falling = [[1, 1, 1, 1, 1e-5]]
    folder.add("table4", "faps", kkt_residual=falling, inner_products=[[0, 8, 16, 24, 44]])
    folder.add("table4", "local_power", kkt_residual=falling, params={"local_steps": 8})
    folder.add("table4", "ssi", kkt_residual=falling)
    rows = report.counts(folder.results())
    found = {r["algorithm"]: r["products"] for r in rows if r["rule"] == "kkt"}
    assert found == {"faps": 11, "local_power": 15, "ssi": 4}


CHAOS = {  # rounds to the stop: 4 and 2, the twins' 2 and 4; of the stable method 4, 2 and 4, 2
    "inner_products": np.zeros((2, 5)),
    "twin_distance": [[1e-16, 1e-3, 1, 1, 1], [2e-16, 1e-3, 0.5, 1, np.nan]],
    "kkt_residual": [[1, 1, 1, 1, 1e-5], [1, 1, 1e-5, 1e-6, 1e-6]],
    "twin": [[1, 1, 1e-5, 1e-6, 1e-6], [1, 1, 1, 1, 1e-5]],
}
STABLE = CHAOS | {
    "twin": CHAOS["kkt_residual"],
    "twin_distance": [[1e-16, 2e-16, 1e-15, 1e-15, 1e-15]] * 2,
}


def test_counts_hold_those_of_the_twins(folder):
    folder.add("table4", "faps", **CHAOS)
    folder.add("table4", "ssi", kkt_residual=CHAOS["kkt_residual"])
    rows = [r for r in report.counts(folder.results()) if r["rule"] == "kkt"]
    assert [(r["rounds"], r["twin_rounds"]) for r in rows] == [(4, 2), (2, 4), (4, None), (2, None)]
    assert [r["twin_products"] for r in rows] == [2, 4, None, None]
    assert [r["twin_bytes_up"] for r in rows] == [16, 32, None, None]


def test_what_amplifies_is_measured(folder):
    """Counts of one range over the starts, and of these only the chaotic ones are rounding's."""
    folder.add("inner", "faps", variant="chaotic", **CHAOS)
    folder.add("inner", "faps", variant="stable", **STABLE)
    folder.add("inner", "ssi", kkt_residual=CHAOS["kkt_residual"])
    results = folder.results()
    chaotic, stable = report.amplification(results)  # ssi has no twins here
    for row in (chaotic, stable):
        assert (row["least"], row["most"], row["rounds"]) == (2, 4, 3)
    assert (chaotic["rounding"], chaotic["decided_by"]) == (2, "rounding")
    assert (stable["rounding"], stable["decided_by"]) == (0, "start")
    assert (chaotic["at_start"], chaotic["after_one"], chaotic["largest"]) == (1.5e-16, 1e-3, 1)
    assert stable["largest"] == 1e-15
    table = report.inner(report.counts(results), report.rates(results))
    found = {row["variant"]: (row["rounding"], row["decided_by"]) for row in table}
    assert found == {"chaotic": (2, "rounding"), "stable": (0, "start"), "default": (None, None)}


def test_orderings_are_also_those_of_the_twins(folder):
    """FAPS needs 3 rounds, its twin 1; SSI, without a twin, 2."""
    folder.add("fig4", "faps", kkt_residual=[[1, 1, 1, 1e-5]], twin=[[1, 1e-5]],
               inner_products=np.zeros((1, 4)), twin_distance=[[0, 1, np.nan, np.nan]])  # fmt: skip
    folder.add("fig4", "ssi", kkt_residual=[[1, 1, 1e-5]])
    rows = [r for r in report.orderings(report.counts(folder.results())) if r["rule"] == "kkt"]
    row = only(rows, claim="faps-before-ssi")
    assert (row["ratio"], row["twin_least_ratio"], row["twin_most_ratio"]) == (1.5, 0.5, 1.5)
    assert row["twin_change_ratio"] == 1
    assert (row["holds"], row["twin_least_holds"], row["twin_most_holds"]) == (False, False, True)
    row = only(rows, claim="local-power-before-ssi")
    assert {v for k, v in row.items() if k.startswith("twin")} == {None}


def stopping(*rounds, records=400):
    """KKT violations that come to the stop after so many rounds; None for never."""
    ends = [records if n is None else n for n in rounds]
    return [[1.0] * end + [1e-5] * (records - end) for end in ends]


RITZ, TWINS, LOCAL = (67, 70, 52), (85, 62, 74), (200, 220, 241, 300, 337)


def race(folder, *, faps=RITZ, twins=TWINS, local=LOCAL, experiment="table4"):
    """Write the histories of FAPS, with twins, and LocalPower; return the row that compares."""
    folder.add(experiment, "faps", kkt_residual=stopping(*faps), twin=stopping(*twins),
               inner_products=np.zeros((len(faps), 400)),
               twin_distance=np.zeros((len(faps), 400)))  # fmt: skip
    folder.add(experiment, "local_power", kkt_residual=stopping(*local))
    rows = report.orderings(report.counts(folder.results()))
    return only(rows, claim="faps-before-local-power", rule="kkt")


def judged(row, root, column, accept):
    """Return the verdict on a column of the one row of a table of orderings."""
    tables.write([row], root / "tables" / "faps" / "orderings.tsv")
    line = {
        "id": "line", "quantity": "q", "source": "s", "kind": "text", "printed": "p",
        "select": {"table": "orderings", "column": column}, "accept": accept, "because": "b",
    }  # fmt: skip
    (found,) = verdicts.judge("faps", [line], root / "tables", unavailable={}, surrogate=False)
    return found


THIRD = {"between": [0.25, 0.42]}


def test_a_ratio_ranges_over_every_exchange_and_not_over_all_twins_at_once(folder):
    """Medians of all eight exchanges, by brute force: 62 to 74; the twins alone: 74."""
    row = race(folder)
    every = [
        np.median(choice) / 241 for choice in itertools.product(*zip(RITZ, TWINS, strict=True))
    ]
    assert row["ratio"] == pytest.approx(67 / 241)
    assert row["twin_least_ratio"] == pytest.approx(min(every)) == pytest.approx(62 / 241)
    assert row["twin_most_ratio"] == pytest.approx(max(every)) == pytest.approx(74 / 241)
    assert row["twin_change_ratio"] == pytest.approx(22 / 241)


def test_a_ratio_of_a_chaotic_method_is_no_agreement(folder):
    """The medians all lie in 0.25 to 0.42, but a repeat moves by 0.091, more than 0.085."""
    row = race(folder)
    found = judged(row, folder.root, "ratio", THIRD)
    assert (found.verdict, found.measured) == ("rounding decides", "0.278")
    assert found.rounding == "0.2573 to 0.3071"
    assert "changes a repeat by up to 0.09129" in found.reason
    # Without what the twins say it would have passed, and so does what they hardly change.
    plain = {k: v for k, v in row.items() if not k.startswith("twin")}
    assert judged(plain, folder.root, "ratio", THIRD).verdict == "reproduced"


def test_a_ratio_of_a_stable_method_is_judged_as_ever(folder):
    found = judged(race(folder, twins=(67, 71, 52)), folder.root, "ratio", THIRD)
    assert (found.verdict, found.rounding) == ("reproduced", "")


def test_a_ratio_that_fails_whatever_is_exchanged_deviates(folder):
    row = race(folder, faps=(344, 201, 390), twins=(299, 372, 205))
    assert judged(row, folder.root, "ratio", THIRD).verdict == "deviates"


@pytest.mark.parametrize(
    ("twins", "verdict"),
    [
        ((67, 70, 52), "reproduced"),  # nothing changes
        ((150, 70, 52), "reproduced"),  # 52, 70, 150: below LocalPower's 100 all the same
        ((150, 150, 52), "rounding decides"),
        ((None, None, 52), "rounding decides"),
        ((150, 52, 150), "rounding decides"),  # not by all twins, of median 150, alone
    ],
)
def test_an_ordering_that_an_exchange_turns_round_is_decided_by_rounding(folder, twins, verdict):
    row = race(folder, twins=twins, local=(90, 100, 110), experiment="fig4")
    assert row["holds"]
    assert judged(row, folder.root, "holds", {"is": True}).verdict == verdict


def test_an_exchange_counts_even_where_all_twins_together_agree(folder):
    """FAPS 50, 60, 120 and twins 120, 60, 50: both of median 60, but 120, 60, 120 of 120."""
    row = race(folder, faps=(50, 60, 120), twins=(120, 60, 50), local=(90, 100, 110))
    assert (row["holds"], row["twin_least_holds"], row["twin_most_holds"]) == (True, False, True)
    assert judged(row, folder.root, "holds", {"is": True}).verdict == "rounding decides"


def test_an_ordering_that_no_exchange_gives_deviates(folder):
    row = race(folder, faps=(120, 150, 130), twins=(110, 180, 140), local=(90, 100, 105))
    assert judged(row, folder.root, "holds", {"is": True}).verdict == "deviates"
    row = race(folder, faps=(None, None, 50), twins=(None, None, 40), local=(90, 100, 105))
    assert math.isnan(row["ratio"]) and not row["twin_most_holds"]
    assert judged(row, folder.root, "ratio", THIRD).verdict == "deviates"


def test_averages_are_over_problems_and_starts(folder):
    for problem, kkt in (("one", [[1.0, 2.0]]), ("two", [[1.0, 4.0], [1.0, 6.0]])):
        residual = np.where(np.array(kkt) == 1, 1, 1e-5)
        folder.add("fig2m", "ssi", problem, kkt=kkt, kkt_residual=residual)
    row = only(report.averages(report.counts(folder.results())), rule="kkt")
    assert (row["kkt"], row["runs"]) == (4.0, 3)


def test_the_variants_of_figure_2c_are_values_of_p(folder):
    for p in (10, 20):
        folder.add(
            "fig2p", "faps", "p", f"p{p}", {"n_components": p, "inner": "residual"},
            kkt_residual=[[1, 1e-5]], inner_products=[[0, p]],
        )  # fmt: skip
    counts = report.counts(folder.results())
    assert {r["variant"] for r in report.averages(counts)} == {"residual"}
    ((method, ticks, values),) = report.panel(counts, "fig2p", "products")
    assert method == "FAPS, inner rule (14)"
    assert ticks == [("p", 10), ("p", 20)]
    np.testing.assert_array_equal(values, [[2.5, 5.0]])


def test_rates_beside_those_of_theory(folder):
    """KKT halves per round from 1e-3 on; b = 0.3, two products per round: by hand."""
    residual = [[1, 1e-3, 5e-4, 2.5e-4, 1.25e-4, 6.25e-5]]
    products = [[0, 4, 12, 20, 28, 36]]
    folder.add("inner", "faps", kkt_residual=residual, inner_products=products,
               penalty=[[0, 0.3, 0.3, 0.3, 0.3, 0.3]])  # fmt: skip
    folder.add("inner", "ssi", kkt_residual=residual)
    results = folder.results()
    rates = report.rates(results)
    row = only(rates, algorithm="faps")
    assert row["measured"] == pytest.approx(0.5)
    assert row["products_per_round"] == pytest.approx(2)
    assert row["exact"] == pytest.approx(0.3 / 0.4)
    assert row["steps"] == pytest.approx((0.3 + 0.1 * (0.4 / 0.8) ** 2) / 0.4)
    assert only(rates, algorithm="ssi")["ssi"] == pytest.approx(0.8)
    theory = report.theory([row])
    assert theory["exact"] == pytest.approx(0.75)
    two = np.interp(2, theory["products_per_round"], theory["steps"])
    assert two == pytest.approx(row["steps"], rel=1e-3)  # between points of the curve
    assert theory["steps"][0] == pytest.approx(1 - 0.1 / (0.5 + 0.3))  # q = 1
    assert report.rates_by_problem(rates) == []  # the table of inner rules has them
    table = report.inner(report.counts(results), rates)
    assert only(table, algorithm="faps")["exact"] == row["exact"]
    assert only(table, algorithm="ssi")["rounds"] == 5


def test_exact_solves_are_slower_than_ssi_where_the_penalty_is_large(folder):
    """b/(b + 0.1) against 0.8: as fast at b = λ₃ = 0.4, and slower above."""
    for problem, b in (("equal", 0.4), ("large", 0.9)):
        residual = [[1, 1e-3, 5e-4, 1e-5]]
        folder.add("fig3", "ssi", problem, kkt_residual=residual)
        folder.add("fig3", "faps", problem, kkt_residual=residual, penalty=[[0, b, b, b]],
                   inner_products=[[0, 4, 8, 12]])  # fmt: skip
    rows = report.rates_by_problem(report.rates(folder.results()))
    assert only(rows, problem="equal")["speed_of_exact"] == pytest.approx(1)
    large = only(rows, problem="large")
    assert large["speed_of_exact"] == pytest.approx(math.log(0.9) / math.log(0.8))
    assert large["ssi_measured"] == pytest.approx(0.1)  # from 1e-3 to 1e-5 in two rounds


def test_orderings_compare_medians(folder):
    """FAPS 2, LocalPower 3, SSI 3 rounds on one problem; on the other FAPS never stops."""
    stops = {2: [1, 1, 1e-5, 1e-6], 3: [1, 1, 1, 1e-6], None: [1, 1, 1, 1]}
    for problem, rounds in (("one", (2, 3, 3)), ("two", (None, 2, 3))):
        for algorithm, count in zip(("faps", "local_power", "ssi"), rounds, strict=True):
            residual = [stops[count], stops[count], stops[3]]
            products = {"inner_products": np.zeros((3, 4))} if algorithm == "faps" else {}
            folder.add("fig3", algorithm, problem, kkt_residual=residual, **products)
    rows = report.orderings(report.counts(folder.results()))
    holds = {
        (r["claim"], r["problem"]): (r["ratio"], r["holds"]) for r in rows if r["rule"] == "kkt"
    }
    assert holds["faps-before-local-power", "one"] == (2 / 3, True)
    assert holds["faps-before-ssi", "one"] == (2 / 3, True)
    assert holds["local-power-before-ssi", "one"] == (1, True)
    assert holds["local-power-before-ssi", "two"] == (2 / 3, True)
    assert math.isnan(holds["faps-before-ssi", "two"][0])
    assert not holds["faps-before-ssi", "two"][1]


def test_leakage_against_convergence(folder):
    folder.add("fig1b", "ssi", "white_50", kkt_residual=[[1, 1e-1, 1e-2, 1e-3, 1e-3]],
               leakage=[[np.nan, 1, 1e-6, 1e-4, 1e-3]], tags={"kind": "white"})  # fmt: skip
    rows = report.leakage(folder.results())
    at_2 = only(rows, limit=1e-2)
    assert (at_2["rounds_leakage"], at_2["rounds_kkt"], at_2["ratio"]) == (2, 2, 1)
    assert at_2["leakage_at_kkt"] == 1e-6
    (row,) = report.growth(rows)
    assert (row["kind"], row["n"], row["least"]) == ("white", 50, 1e-6)
    assert (row["rounds_leakage"], row["rounds_known"]) == (2, 2)
    assert math.isnan(row["rounds_kkt"])
    assert row["ratio"] == 2 / 4  # at least four rounds for the KKT violation


def test_the_tables_of_a_run(folder, clients):
    """SSI and FAPS as the workflow runs them: the stop is where the run ended."""
    folder.add_problem("small", clients)
    stop = {"kkt_residual": {"at_most": report.KKT_LIMIT}}
    for algorithm, params in (("ssi", {}), ("faps", {"inner": "residual"})):
        params = {"rounds": 300} | params
        Folder.add(folder, "inner", algorithm, "small", params=params, seed=1, stop=stop)
    results = folder.results()
    counts = report.counts(results)
    for algorithm in ("ssi", "faps"):
        history = results[f"inner/{algorithm}/small-default"]
        rows = [r for r in counts if r["algorithm"] == algorithm and r["rule"] == "kkt"]
        assert [r["rounds"] for r in rows] == history.last("round").tolist()
    squares = np.linalg.svd(np.vstack(clients), compute_uv=False) ** 2
    for row in report.rates(results):
        assert row["ssi"] == pytest.approx(squares[2] / squares[1])
        assert 0 < row["measured"] < 1

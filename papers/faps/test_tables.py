"""Tables of `faps`: from made-up histories with answers by hand, and from tiny runs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from faps import tables as report
from fedcore.history import History, save_seconds
from fedcore.reports import tables
from fedcore.repro.config import claims
from fedcore.repro.tables.rows import chosen
from fedcore.repro.verdicts import verdicts
from folder import Folder

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
        params = {"rounds": shape[1] - 1} | dict(params)  # every run makes all its rounds
        if algorithm == "faps":
            tags = {"method": "FAPS"} | dict(tags)
        super().add(
            experiment, algorithm, problem, variant, params=params, tags=dict(tags),
            history=history,
        )  # fmt: skip

    def results(self):
        return super().results(*report.EXPERIMENTS, "times", "fig1a", "fig1b", "late")


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


def test_rule_27_also_ends_a_run_after_maxiter_rounds(folder):
    captured = np.arange(1.0, report.MAX_ITER + 2)[None]
    folder.add("fig4", "ssi", captured=captured)
    row = only(report.counts(folder.results()), rule="rule27")
    assert row["rounds"] == report.MAX_ITER


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


def test_a_stop_that_did_not_end_the_run_has_no_row(folder):
    """Two rounds of a hundred were made; (27) was not among the stops, so nothing is known."""
    columns = {"kkt_residual": [[1, 1e-3, 1e-5]], "captured": [[1, 2, 3]]}
    made = {"inner_products": np.zeros((1, 3))}
    folder.add("table1", "faps", params={"rounds": 100}, **columns, **made)
    folder.add("table1", "ssi", **columns)
    rows = report.counts(folder.results())
    found = [(r["algorithm"], r["rule"], r["rounds"]) for r in rows if r["rule"] != "scaled"]
    assert found[:2] == [("faps", "kkt", 2), ("ssi", "kkt", 2)]
    assert found[2][:2] == ("ssi", "rule27") and math.isnan(found[2][2])  # never in all rounds


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


def test_leads_are_also_those_of_the_twins(folder):
    """FAPS needs 3 rounds, its twin 1; SSI, without a twin, 2."""
    folder.add("fig4", "faps", kkt_residual=[[1, 1, 1, 1e-5]], twin=[[1, 1e-5]],
               inner_products=np.zeros((1, 4)), twin_distance=[[0, 1, np.nan, np.nan]])  # fmt: skip
    folder.add("fig4", "ssi", kkt_residual=[[1, 1, 1e-5]])
    row = only(report.leads(report.counts(folder.results())), rule="kkt")
    assert (row["lead"], row["twin_lead"]) == (2 / 3, 2)
    assert (row["fewer"], row["twin_fewer"]) == (False, True)


def test_starts_are_compared_one_by_one(folder):
    """FAPS has three of the five starts; its medians 3 and 3 would be a tie."""
    stops = {n: [1.0] * n + [1e-5] * (7 - n) for n in range(1, 7)}
    zeros = np.zeros((3, 7))
    folder.add("fig4", "faps", kkt_residual=[stops[n] for n in (2, 3, 6)], inner_products=zeros)
    folder.add("fig4", "ssi", kkt_residual=[stops[n] for n in (3, 2, 5, 3, 6)])
    rows = report.leads(report.counts(folder.results()))
    found = {r["repeat"]: (r["fewer"], r["lead"]) for r in rows if r["rule"] == "kkt"}
    assert found == {0: (True, 3 / 2), 1: (False, 2 / 3), 2: (False, 5 / 6)}


@pytest.mark.parametrize(("power", "fewer"), [(3, True), (4, False), (5, False)])
def test_a_tie_with_ssi_is_no_lead(folder, power, fewer):
    for algorithm, rounds in (("ssi", 4), ("local_power", power), ("faps", power)):
        made = {"inner_products": np.zeros((1, 7))} if algorithm == "faps" else {}
        residual = [[1.0] * rounds + [1e-5] * (7 - rounds)]
        folder.add("fig4", algorithm, kkt_residual=residual, **made)
    rows = chosen(report.leads(report.counts(folder.results())), rule="kkt")
    found = {(row["method"], row["rival"]): row["fewer"] for row in rows}
    assert found == {
        ("LocalPower", "ssi"): fewer, ("FAPS", "ssi"): fewer, ("FAPS", "local_power"): False
    }  # fmt: skip


def rounds_of_a_run(made):
    """Return the rounds to the stop of a run that makes so many, and of one that comes to none."""
    return [*range(1, made + 1), None]


@pytest.mark.parametrize("made", [(3, 5), (5, 3), (4, 4)])
def test_a_lead_is_told_where_every_end_of_the_runs_agrees(folder, made):
    """Runs that go on may need any number of rounds above those that they made."""

    def stopping(after, rounds):
        return [1.0] * (after or rounds + 1) + [1e-5] * (rounds + 1 - (after or rounds + 1))

    ours, theirs = zip(*itertools.product(*map(rounds_of_a_run, made)), strict=True)
    blank = np.zeros((len(ours), made[0] + 1))
    folder.add("fig4", "faps", kkt_residual=[stopping(n, made[0]) for n in ours],
               inner_products=blank)  # fmt: skip
    folder.add("fig4", "ssi", kkt_residual=[stopping(n, made[1]) for n in theirs])
    rows = chosen(report.leads(report.counts(folder.results())), rule="kkt")
    for row, one, other in zip(rows, ours, theirs, strict=True):
        ends = [[n] if n else range(m + 1, 20) for n, m in zip((one, other), made, strict=True)]
        possible = {b > a for a, b in itertools.product(*ends)}
        assert row["fewer"] is (possible.pop() if len(possible) == 1 else None)
        assert (row["lead"] is None) == (row["fewer"] is None)
        if one and other:
            assert row["lead"] == other / one


@pytest.mark.parametrize(
    ("twins", "word"), [((2,) * 7, "holds"), ((2, 2, 2, 2, 2, 2, 9), "undecided")]
)
def test_an_ordering_that_a_twin_turns_round_is_undecided(folder, twins, word):
    def stopping(rounds):
        return [[1.0] * n + [1e-5] * (10 - n) for n in rounds]

    blank = np.zeros((7, 10))
    folder.add("fig4", "faps", kkt_residual=stopping((2,) * 7), twin=stopping(twins),
               inner_products=blank, twin_distance=blank)  # fmt: skip
    folder.add("fig4", "ssi", kkt_residual=stopping((5,) * 7))
    rows = chosen(report.leads(report.counts(folder.results())), rule="kkt")
    assert word_on(rows, folder.root, "fewer", {"most_runs": {}}) == word


@pytest.mark.parametrize(("printed", "word"), [("2000", "fails"), ("250", "undecided")])
def test_a_count_that_no_twin_comes_near_fails(tmp_path, printed, word):
    """Rounding moves a run by more than half of their range, and never to 2000."""
    pairs = ((232, 457), (221, 163), (372, 254), (300, 250), (260, 310))
    rows = [{"rounds": own, "twin_rounds": twin} for own, twin in pairs]
    assert word_on(rows, tmp_path, "rounds", {"number": {"of": printed}}) == word


def word_on(rows, root, column, test):
    """Return the word on a column of a table with these rows."""
    tables.write(rows, root / "made.tsv")
    item = {
        "id": "made", "title": "t", "source": "s", "kind": "sentence", "printed": "p",
        "select": {"table": "made", "column": column}, "test": test,
    }  # fmt: skip
    written = claims.written_out({"items": [item]}, "here")
    (found,) = verdicts.judge("faps", written, root, not_run={}, stand_ins=False)
    return found.word


POINTS = ("one", "two", "three", "four")


def test_averages_are_over_the_four_points_of_one_start(folder):
    """SSI has two starts on one point and one on the others; FAPS was run on one point alone."""
    for i, problem in enumerate(POINTS):
        kkt = [[1.0, 2.0 + i], [1.0, 8.0]][: 2 if i == 0 else 1]
        folder.add(
            "fig2m", "ssi", problem, kkt=kkt, kkt_residual=np.where(np.array(kkt) == 1, 1, 0)
        )
    folder.add("fig2m", "faps", "one", kkt_residual=[[1, 1e-5]], inner_products=[[0, 1]])
    rows = chosen(report.averages(report.counts(folder.results())), rule="kkt")
    found = [(row["method"], row["repeat"], row["kkt"]) for row in rows]
    assert found == [("SSI", 0, 3.5), ("FAPS", 0, None)]


def test_a_start_that_never_stops_has_no_average(folder):
    for problem in POINTS:
        last = 1.0 if problem == "three" else 1e-5
        folder.add("fig2m", "ssi", problem, kkt=[[1, 2], [1, 4]],
                   kkt_residual=[[1, last], [1, 1e-5]])  # fmt: skip
    rows = chosen(report.averages(report.counts(folder.results())), rule="kkt")
    assert [row["kkt"] for row in rows] == [None, 4]


def test_the_advantage_of_a_start(folder):
    """SSI's rounds over ours are 2, 4 and 3; without one κ nothing is known."""
    for problem, faps, ssi in (("kappa10", 3, 6), ("kappa1000", 2, 8), ("kappa100", 2, 6)):
        rows = report.advantage(report.leads(report.counts(folder.results())))
        assert all(row["change"] is None for row in rows)
        for algorithm, rounds in (("faps", faps), ("ssi", ssi)):
            made = {"inner_products": np.zeros((1, 10))} if algorithm == "faps" else {}
            folder.add("fig4", algorithm, problem,
                       kkt_residual=[[1.0] * rounds + [1e-5] * (10 - rounds)], **made)  # fmt: skip
    folder.add("fig3", "faps", kkt_residual=np.ones((1, 10)), inner_products=np.zeros((1, 10)))
    folder.add("fig3", "ssi", kkt_residual=[[1.0, 1e-5]])
    rows = report.advantage(report.leads(report.counts(folder.results())))
    assert only(rows, rule="kkt")["change"] == 2


@pytest.mark.parametrize(("ssi", "best"), [(8, []), (30, [(2, 15)])])
def test_the_largest_advantage_is_decided_by_all_points_or_by_a_large_one(folder, ssi, best):
    """Medians 2 and ssi / 2 over three starts; Figure 3 with centred images is another reading."""
    for experiment, faps, others in (
        ("fig4", 3, (6, 6, 30)), ("table4", 2, (ssi, ssi, 2)), ("fig3centred", 1, (40, 40, 40)),
    ):  # fmt: skip
        rounds = {"faps": (faps,) * 3, "ssi": others}
        for algorithm, numbers in rounds.items():
            made = {"inner_products": np.zeros((3, 50))} if algorithm == "faps" else {}
            residual = [[1.0] * n + [1e-5] * (50 - n) for n in numbers]
            folder.add(experiment, algorithm, "kappa10", kkt_residual=residual, **made)
    table = report.leads(report.counts(folder.results()))
    rows = chosen(report.largest(table), rule="kkt")
    assert [(row["points"], row["best"]) for row in rows] == best
    lead = dict(chosen(table, rule="kkt", experiment="fig4")[0])
    every = [lead | {"point": str(i)} for i in range(24)]
    assert only(report.largest(every), rule="kkt")["best"] == 2


def test_seconds_count_from_the_start_to_each_stop(folder):
    """LocalPower takes 2 s a round and three rounds, SSI 1 s and four; one start of two."""
    for algorithm, rounds, each in (("local_power", 3, 2.0), ("ssi", 4, 1.0)):
        falling = [[1.0] * rounds + [1e-5] * (6 - rounds)]
        folder.add("times", algorithm, kkt_residual=falling, captured=[np.arange(1.0, 7.0)])
        path = folder.root / "seconds/faps/times" / algorithm / "one-default.tsv"
        save_seconds(History({}, seconds=0.5 + each * np.arange(6.0)[None]), path)
    rows = report.times(folder.results())
    columns = ("method", "seconds", "over_local_power", "round_over_ssi")
    found = [tuple(row[name] for name in columns) for row in chosen(rows, rule="kkt")]
    assert found == [("LocalPower", 6.0, 1.0, 2.0), ("SSI", 4.0, pytest.approx(4 / 6), 1.0)]
    assert all(math.isnan(r["seconds"]) for r in chosen(rows, rule="rule27"))


def test_a_panel_has_what_a_start_made_to_rule_27_or_to_its_limit(folder):
    """By hand: one start stops after two rounds, the other is cut after four; 3 s a round."""
    captured = [[1, 2, 2, 2, 2], [1, 2, 3, 4, 5]]
    folder.add("fig2m", "faps", captured=captured, inner_products=[np.arange(5.0) * 8] * 2)
    path = folder.root / "seconds/faps/fig2m/faps/one-default.tsv"
    save_seconds(History({}, seconds=7 + 3.0 * np.arange(5.0)[None].repeat(2, 0)), path)
    (run,) = folder.results().runs("fig2m")
    found = {name: values.tolist() for name, values in report.at_stop(run).items()}
    assert found == {"rounds": [2, 4], "seconds": [6, 12], "products": [2, 2], "cut": [False, True]}


def test_straight_and_bent_falls(folder):
    k = np.arange(40.0)
    geometric, harmonic = 10.0 ** (-k / 8), 1e-2 / (1 + np.maximum(k - 5, 0))
    folder.add("fig4", "ssi", "kappa10", kkt_residual=[geometric])
    folder.add("fig4", "ssi", "kappa100", kkt_residual=[np.where(k < 5, 1, harmonic)])
    folder.add("fig4", "ssi", "kappa1000", kkt_residual=[geometric[:20]])
    rows = {row["problem"]: row for row in report.linear(folder.results())}
    assert rows["kappa10"]["straight"] == pytest.approx(1)
    assert rows["kappa10"]["rate"] == pytest.approx(10 ** (-1 / 8))
    assert rows["kappa100"]["straight"] < 0.95
    assert math.isnan(rows["kappa1000"]["straight"])  # four records after 1e-2


def test_harder_problems_need_more_rounds(folder):
    """A part of the problems can refute that, and all of them alone can bear it out."""

    def found():
        rows = report.harder(report.counts(folder.results()))
        return [(r["claim"], r["holds"]) for r in rows if r["rule"] == "kkt"]

    for problem, rounds in (("xi1", (1, 2)), ("xi2", (2, 1)), ("xi4", (4, 4))):
        residual = [[1.0] * n + [1e-5] * (5 - n) for n in rounds]
        folder.add("fig2xi", "ssi", problem, kkt_residual=residual)
    assert found() == [("decay", None), ("decay", False)]
    folder.add("fig2xi", "ssi", "xi3", kkt_residual=[[1.0] * 3 + [1e-5] * 2] * 2)
    assert found() == [("decay", True), ("decay", False)]


def test_the_variants_of_figure_2c_are_values_of_p(folder):
    for p in (10, 20):
        folder.add(
            "fig2p", "faps", "p", f"p{p}", {"n_components": p}, kkt_residual=[[1, 1e-5]],
            inner_products=[[0, p]],
        )  # fmt: skip
        folder.add("fig2p", "ssi", "p", f"p{p}", {"n_components": p}, kkt_residual=[[1, 1e-5]])
    folder.add("fig2p", "faps", "p", "server-p10", {"n_components": 10}, kkt_residual=[[1, 1e-5]],
               inner_products=[[0, 1]], tags={"method": "another"})  # fmt: skip
    counts = report.counts(folder.results())
    found = {(r["method"], r["point"]) for r in report.leads(counts)}
    assert found == {("FAPS", "p10"), ("FAPS", "p20"), ("another", "p10")}


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
    folder.add("table4", "faps", variant="server", params={"inner_start": "server"},
               kkt_residual=residual, inner_products=products,
               penalty=[[0, 0.3, 0.3, 0.3, 0.3, 0.3]])  # fmt: skip
    (server,) = chosen(report.rates(folder.results()), variant="server")
    one_step = 1 - 0.1 / 0.3 + (1 - 0.4 / 0.8) * 0.01 / (0.3 * 0.4)  # one product of two is Z's
    assert server["steps"] == pytest.approx(one_step)
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


def test_leakage_against_convergence(folder):
    folder.add("fig1b", "ssi", "white_50", kkt_residual=[[1, 1e-1, 1e-2, 1e-3, 1e-3]],
               leakage=[[np.nan, 1, 1e-6, 1e-4, 1e-3]], tags={"kind": "white"})  # fmt: skip
    rows = report.leakage(folder.results())
    at_2 = only(rows, limit=1e-2)
    assert (at_2["rounds_leakage"], at_2["rounds_kkt"], at_2["ratio"]) == (2, 2, 1)
    assert at_2["leakage_at_kkt"] == 1e-6
    row = only(rows, limit=1e-5)
    assert (row["kind"], row["n"], row["least"]) == ("white", 50, 1e-6)
    assert row["rounds_leakage"] == 2 and row["over_ssi"] is None
    assert math.isnan(row["rounds_kkt"])
    assert row["ratio"] == 2 / 4  # at least four rounds for the KKT violation
    assert row["early"] and not at_2["early"]


def test_a_matrix_not_known_early_in_a_run_that_ended_too_soon_says_nothing(folder):
    folder.add("fig1b", "ssi", "white_50",
               kkt_residual=[[1, 1e-2, 1e-6, 1e-6], [1, 1, 1, 1], [1, 1, 1, 1]],
               leakage=[[1, 1, 1e-6, 1e-6], [1, 1, 1e-6, 1e-6], [1, 1, 1, 1]])  # fmt: skip
    rows = report.known_early(report.leakage(folder.results()))
    assert [row["early"] for row in chosen(rows, limit=1e-5)] == [False, None, None]


def test_what_faps_leaks_is_held_against_what_ssi_does(folder):
    """Start by start, by the smallest errors that the attack reaches."""
    for algorithm, least in (("faps", (0.5, 0.3)), ("ssi", (1e-3, 1e-2))):
        errors = [[np.nan, 1, e, 2 * e] for e in least]
        folder.add("fig1a", algorithm, leakage=errors)
    rows = chosen(report.leakage(folder.results()), limit=1e-5, algorithm="faps")
    assert [row["over_ssi"] for row in rows] == pytest.approx([500, 30])


def test_a_late_attack_is_read_from_its_own_column(folder):
    folder.add("late", "local_power", kkt_residual=[[1, 1, 1]], late_leakage=[[np.nan, 1, 1e-6]])
    row = only(report.leakage(folder.results()), limit=1e-5)
    assert (row["rounds_leakage"], row["least"]) == (2, 1e-6)


def test_the_tables_of_a_run(folder, clients):
    """As the workflow runs them: the stop is where the run ended, and rounds have equal bytes."""
    folder.add_problem("small", clients)
    stop = {"kkt_residual": {"at_most": report.KKT_LIMIT}}
    for algorithm, params in (("ssi", {}), ("local_power", {}), ("faps", {"inner": "residual"})):
        params = {"rounds": 300} | params
        Folder.add(folder, "inner", algorithm, "small", params=params, seed=1, stop=stop)
    results = folder.results()
    counts = report.counts(results)
    for algorithm in ("ssi", "local_power", "faps"):
        history = results[f"inner/{algorithm}/small-default"]
        width = 8 * len(clients) * 2 * clients[0].shape[1]
        assert (history.last("bytes_up") == width * history.last("round")).all()
        rows = [r for r in counts if r["algorithm"] == algorithm and r["rule"] == "kkt"]
        assert [r["rounds"] for r in rows] == history.last("round").tolist()
    squares = np.linalg.svd(np.vstack(clients), compute_uv=False) ** 2
    for row in report.rates(results):
        assert row["ssi"] == pytest.approx(squares[2] / squares[1])
        assert 0 < row["measured"] < 1

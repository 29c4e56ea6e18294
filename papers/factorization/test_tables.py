"""Tables of `factorization` on tiny results, made by the road that the workflow takes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from factorization import panels, theory
from factorization import tables as report
from fedcore.history import History
from fedcore.repro.plan.plan import load_plan
from fedcore.repro.tables.rows import chosen
from folder import Folder

RANK = 3
METRICS = ["objective", "exact_objective", "exact_excess", "client_excess", "kappa"]
THRESHOLDS = {"log10_threshold": 5.0, "printed_log10_threshold": 5.5}  # those of w8a


@pytest.fixture
def folder(tmp_path, clients):
    """Return results without cells, of one problem with known singular values."""
    folder = Folder(tmp_path, "factorization", {"n_components": RANK}, METRICS)
    folder.add_problem("gap", clients)
    return folder


class Bare(Folder):
    """Results of problems without clients, to which made-up histories are added."""

    def made(
        self, experiment, variant="default", *, algorithm="power_gd", problem="synthetic",
        history=None, params=None, **more,
    ):  # fmt: skip
        self.problems[problem] = {}
        tags = more.pop("tags", {})
        history = history or made_up(**more)
        self.add(experiment, algorithm, problem, variant, history=history, params=params or {},
                 tags=tags)  # fmt: skip


@pytest.fixture
def bare(tmp_path):
    """Return results without cells or clients."""
    return Bare(tmp_path, "factorization", {"n_components": RANK}, METRICS)


def made_up(**columns):
    """Return a history of columns given as (repeats, records)."""
    arrays = {name: np.array(values, dtype=float) for name, values in columns.items()}
    repeats, records = next(iter(arrays.values())).shape
    return History({"iteration": np.tile(np.arange(records), (repeats, 1)), **arrays})


# --- formulas -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sigma", "r", "d", "alpha", "p", "version", "expected"),
    [
        # p⁻² (9 r² (σ₁/σ_r)^{2(2α+1)} + 4 r (d + ln(2/p)) (σ_{r+1}/σ_r)^e), by hand
        ([2, 1], 1, 3, 1, 0.5, "body", 4 * (9 + 4 * (3 + math.log(4)) / 4)),
        ([2, 1], 1, 3, 1, 0.5, "appendix", 4 * (9 + 4 * (3 + math.log(4)) / 64)),
        ([4, 2, 1], 2, 5, 0, 0.1, "body", 100 * (36 * 4 + 8 * (5 + math.log(20)))),
        ([4, 2, 1], 2, 5, 0, 0.1, "appendix", 100 * (36 * 4 + 8 * (5 + math.log(20)) / 4)),
        ([4, 2, 1], 2, 5, 2, 0.1, "body", 100 * (36 * 1024 + 8 * (5 + math.log(20)) / 16)),
        ([4, 2, 1], 2, 5, 2, 0.1, "appendix", 100 * (36 * 1024 + 8 * (5 + math.log(20)) / 1024)),
    ],
)
def test_the_bound_of_theorem_2(sigma, r, d, alpha, p, version, expected):
    found = theory.kappa_bound(np.array(sigma, dtype=float), r, d, alpha, p, version)
    assert found == pytest.approx(expected, rel=1e-14)  # rounding


@pytest.mark.parametrize(
    ("sigma", "r", "alpha", "p", "version", "expected"),
    [
        # 2 r c Σ σᵢ² (σ₁² − σᵢ²)/σ_r² (σᵢ/σ_r)^{4α} with c of the body or of the appendix, by hand
        ([2, 1], 1, 1, 0.5, "body", 2 * 2 * math.log(8) * 0.75 / 16),
        ([2, 1], 1, 1, 0.5, "appendix", 2 * 4 * math.log(4) * 0.75 / 16),
        ([4, 2, 1, 0.5], 2, 0, 0.1, "body", 4 * 10 * math.log(400) * (3.75 + 0.984375)),
        ([4, 2, 1, 0.5], 2, 0, 0.1, "appendix", 4 * 100 * math.log(40) * (3.75 + 0.984375)),
        (
            [4, 2, 1, 0.5], 2, 1, 0.1, "body",
            4 * 10 * math.log(400) * (3.75 / 16 + 0.984375 / 256),
        ),
        ([4, 2, 0, 0], 2, 1, 0.1, "body", 0.0),
    ],
)  # fmt: skip
def test_the_bound_of_theorem_3(sigma, r, alpha, p, version, expected):
    found = theory.excess_bound(np.array(sigma, dtype=float), r, alpha, p, version)
    assert found == pytest.approx(expected, rel=1e-13, abs=0)  # rounding


def test_the_floors_leave_out_r_and_r_plus_one_values(folder):
    history = folder.add("fig1", "power_exact", "gap")
    # 0.4, 0.3, 0.25, 0.2, 0.1, 0.05 after the third; singular values are known to 1e-15.
    rest = 0.3**2 + 0.25**2 + 0.2**2 + 0.1**2 + 0.05**2
    expected = {"true": 0.5 * (0.4**2 + rest), "code": 0.5 * rest}
    assert report.floors(history) == pytest.approx(expected, rel=1e-13)


# --- tables -------------------------------------------------------------------------------------


def test_sizes_and_spectra(folder, low_rank_clients):
    folder.add_problem("flat", low_rank_clients, status="surrogate", note="n")
    for problem in ("gap", "flat"):
        folder.add("fig1", "centralized_svd", problem, repeats=1)
    results = folder.results()
    sizes = report.SHOWN(report.sizes(results))
    assert sizes[0].pop("svd_over_floor") == pytest.approx(1.0, rel=1e-9)  # Eckart and Young
    del sizes[1]["svd_over_floor"]  # of rounding alone, as the rank is 3
    assert sizes == [
        {"problem": name, "status": status, "d": 9, "r": 3, "n": 40, "N": 4}
        for name, status in (("gap", "synthetic"), ("flat", "surrogate"))
    ]
    rows = report.spectra(results)
    for name, sigma in (("gap", [5, 4, 3, 0.4, 0.3, 0.25, 0.2, 0.1, 0.05]), ("flat", [5, 4, 3])):
        found = chosen(rows, problem=name)
        assert [row["k"] for row in found] == list(range(1, len(sigma) + 1))
        np.testing.assert_allclose([row["sigma"] for row in found], sigma, rtol=1e-13)


def test_kappa_has_a_row_per_repeat_and_reading(folder):
    histories = {
        select: folder.add(
            "kappa", "power_iteration", "gap", select,
            params={"power": 1, "samples": 4, "select": select},
        )
        for select in ("initial", "final")
    }  # fmt: skip
    rows = report.kappa(folder.results())
    assert [(row["select"], row["repeat"]) for row in rows] == [
        ("initial", 0), ("initial", 1), ("final", 0), ("final", 1),
    ]  # fmt: skip
    for row in rows:
        V = histories[row["select"]].final["V"][row["repeat"]]
        assert row["kappa"] == pytest.approx(np.linalg.cond(V), rel=1e-9)  # κ(V) eps
        assert row["kappa_squared"] == pytest.approx(np.linalg.cond(V) ** 2, rel=1e-9)


def test_communications_are_the_round_of_the_first_record_below_the_threshold(bare):
    # σ = 1000, 1, 1 at rank 1: the true floor is 1 and the code's 1/2. Thresholds 1e5 and 10^5.5.
    history = made_up(
        objective=[[1e7, 3e5, 100_000.75, 100_000.25], [1e7, 1e7, 1e6, 5e5]],
        round=[[0, 2, 4, 6], [0, 2, 4, 6]],
    )
    history.reference["singular_values"] = np.array([1000.0, 1.0, 1.0])
    more = {"history": history, "params": {"n_components": 1}, "tags": THRESHOLDS}
    bare.made("table2", algorithm="wk2023", problem="w8a", **more)
    bare.made("table2", "fast", problem="w8a", **more)
    rows = report.communications(bare.results())
    assert {row["method"] for row in rows} == {"wk2023", "power_gd-fast"}
    found = {
        (row["order"], row["convention"], row["repeat"]): (row["rounds"], row["iterations"])
        for row in chosen(rows, method="wk2023")
    }
    never = pytest.approx((np.nan, np.nan), nan_ok=True)
    assert found == {
        ("code", "true", 0): (4, 2),
        ("code", "code", 0): (6, 3),
        ("printed", "true", 0): (2, 1),
        ("printed", "code", 0): (2, 1),
        ("code", "none", 0): never,  # the loss itself stays above 1e5
        ("printed", "none", 0): (2, 1),
        ("code", "true", 1): never,
        ("code", "code", 1): never,
        ("printed", "true", 1): never,
        ("printed", "code", 1): never,
        ("code", "none", 1): never,
        ("printed", "none", 1): never,
    }


@pytest.mark.parametrize("exact", [0.0, 1e-9])
def test_slopes_of_an_exactly_linear_figure(bare, exact):
    x = np.array([0.01, 0.02, 0.05, 0.03, 0.5, 0.9])
    loss = 10 ** (2.0 - 7.0 * x)
    if exact:
        loss[4:] = exact * 1.0009  # come down to the exact solution: no part of the line
    columns = {"kappa": x[:, None] ** -0.5, "objective": loss[:, None]}
    params = {"local_steps": 8, "power": 1}
    bare.made("fig2", params=params, **columns, exact_objective=np.full((6, 1), exact))
    (row,) = report.slopes(bare.results())
    assert row["draws"] == (4 if exact else 6)
    assert row["slope"] == pytest.approx(-7.0, rel=1e-10)  # rounding in the fit
    assert row["explained"] == pytest.approx(1.0, rel=1e-10)
    assert row["predicted"] == pytest.approx(-16 / math.log(10), rel=1e-14)
    x, loss = x[: row["draws"]], loss[: row["draws"]]
    above = np.cov(x, np.log10(loss - exact))[0, 1] / np.var(x, ddof=1)
    assert row["excess_slope"] == pytest.approx(above, rel=1e-9)
    assert (row["problem"], row["status"], row["alpha"]) == ("synthetic", "synthetic", 1)


def test_two_points_are_no_slope(bare):
    columns = {"kappa": [[3], [4], [5]], "objective": [[1], [2], [1]]}
    params = {"local_steps": 8, "power": 0}
    bare.made("fig2", params=params, **columns, exact_objective=[[0.5], [1], [1]])
    (row,) = report.slopes(bare.results())
    assert row["draws"] == 2 and row["slope"] is None and row["excess_slope"] is None


@pytest.mark.parametrize(("mixed", "most"), [(0.0, 1.0), (3.0, 0.9)])
def test_a_rate_that_kappa_does_not_determine_is_not_explained_by_it(bare, mixed, most):
    rng = np.random.default_rng(0)
    x = np.linspace(0.01, 0.5, 10)
    loss = 10 ** (2.0 - 7.0 * x + mixed * rng.standard_normal(10))
    columns = {"kappa": x[:, None] ** -0.5, "objective": loss[:, None]}
    params = {"local_steps": 8, "power": 1}
    bare.made("fig2", params=params, **columns, exact_objective=np.zeros((10, 1)))
    (row,) = report.slopes(bare.results())
    assert (row["explained"] > 0.9) == (mixed == 0.0) and row["explained"] <= most + 1e-9


def test_final_and_exact_errors_and_claims(folder):
    for alpha in (0, 1):
        for momentum in (False, True):
            folder.add(
                "fig3", "power_gd", "gap", f"alpha{alpha}-{'agd' if momentum else 'gd'}",
                params={
                    "power": alpha, "momentum": momentum, "local_steps": 20, "select": "final"
                },
            )  # fmt: skip
    results = folder.results("fig2", "kappa", "many_draws")
    finals, exacts = report.final_errors(results), report.exact_errors(results)
    assert len(finals) == len(exacts) == 8
    floor = 0.5 * (0.4**2 + 0.3**2 + 0.25**2 + 0.2**2 + 0.1**2 + 0.05**2)
    for final, exact in zip(finals, exacts, strict=True):
        algorithm_cell = f"fig3/power_gd/gap-{final['variant']}"
        history, repeat = results[algorithm_cell], final["repeat"]
        log_loss, log_exact = (
            math.log10(history[column][repeat, -1]) for column in ("objective", "exact_objective")
        )
        assert final["log10_loss"] == pytest.approx(log_loss)
        assert final["log10_exact"] == pytest.approx(log_exact) == exact["log10_exact"]
        assert final["log10_above_exact"] == pytest.approx(log_loss - log_exact)
        assert exact["log10_above_floor"] == pytest.approx(log_exact - math.log10(floor))
        assert final["momentum"] == final["variant"].endswith("agd")
        assert final["recovered"] == (log_loss - log_exact <= 0.01)
    claims = {(row["claim"], row["repeat"]): row["holds"] for row in report.claims(results)}
    assert len(claims) == 14
    loss = {(f["alpha"], f["momentum"], f["repeat"]): f for f in finals}
    for repeat in range(2):
        ends = {(a, m): loss[a, m, repeat]["log10_loss"] for a in (0, 1) for m in (False, True)}
        exact0, exact1 = (loss[a, False, repeat]["log10_exact"] for a in (0, 1))
        best0, best1 = (min(ends[a, False], ends[a, True]) for a in (0, 1))
        expected = {
            "alpha1-lowers-exact-loss": exact1 < exact0,
            "alpha1-descent-is-best": ends[1, False] < min(exact0, best0),
            "alpha0-descent-is-best": best0 < best1,
            "alpha1-exact-is-best": exact1 + 0.01 < min(best0, best1),
        }
        assert {name: claims[name, repeat] for name in expected} == expected


def test_momentum_is_faster_if_it_arrives_sooner_or_else_ends_lower(bare):
    # Repeats: sooner; later; only one arrives; neither arrives, lower; a failed one.
    plain = [[9, 5, 1, 1], [9, 1, 1, 1], [9, 9, 8, 7], [9, 9, 8, 7], [9, 9, 9, 9]]
    fast = [[9, 1, 1, 1], [9, 2, 1, 1], [9, 5, 1, 1], [9, 9, 9, 6], [9, 9, 9, np.nan]]
    for alpha in (0, 1):
        for momentum, loss in ((False, plain), (True, fast)):
            params = {"power": alpha, "momentum": momentum, "select": "final"}
            run = {"objective": loss, "exact_objective": np.full((5, 4), 1.0)}
            bare.made("fig3", f"{alpha}{momentum}", params=params, **run)
    rows = report.claims(bare.results("fig2", "kappa", "many_draws"))
    for alpha in (0, 1):
        found = chosen(rows, claim=f"momentum-is-faster-alpha{alpha}")
        assert [row["holds"] for row in found] == [True, False, True, True, None]


def test_a_descent_that_diverged_bears_out_nothing_that_is_said_of_it(bare):
    """In all repeats: a value that is missing would leave the sentence undecided."""
    lost = {"objective": [[9.0, np.nan]], "diverged": [[0, 1]]}
    for alpha in (0, 1):
        for momentum in (False, True):
            run = lost if momentum else {"objective": [[9.0, 1.0]], "diverged": [[0, 0]]}
            run |= {"exact_objective": [[1.0, 1.0]], "kappa": [[3.0, 3.0]]}
            params = {"power": alpha, "momentum": momentum, "local_steps": 1, "select": "final"}
            bare.made("fig3", f"{alpha}{momentum}", params=params, **run)
    results = bare.results("fig2", "kappa", "many_draws")
    ends = {(row["alpha"], row["momentum"]): row for row in report.final_errors(results)}
    said = {row["claim"]: row["holds"] for row in report.claims(results)}
    for alpha in (0, 1):
        assert ends[alpha, True]["recovered"] is False
        assert ends[alpha, False]["recovered"] is True
        assert said[f"momentum-is-faster-alpha{alpha}"] is False
    assert said["alpha0-descent-is-best"] is None  # plain descent did not diverge
    assert said["alpha1-lowers-exact-loss"] is False  # no descent takes part; both losses are 1


@pytest.mark.parametrize(("above", "holds"), [(1.02, False), (1.03, True)])
def test_the_exact_solution_is_the_best_if_a_figure_shows_it(bare, above, holds):
    for alpha, exact in ((0, 2.0), (1, 1.0)):
        for momentum in (False, True):
            loss = above if (alpha, momentum) == (1, True) else 3.0
            params = {"power": alpha, "momentum": momentum, "select": "final"}
            run = {"objective": [[9.0, loss]], "exact_objective": [[exact, exact]]}
            bare.made("fig3", f"{alpha}{momentum}", params=params, **run)
    rows = report.claims(bare.results("fig2", "kappa", "many_draws"))
    assert [row["holds"] for row in chosen(rows, claim="alpha1-exact-is-best")] == [holds]


def test_claims_about_several_draws_and_the_condition_number(folder):
    kappas = {}
    for power, select in ((0, "initial"), (1, "initial"), (1, "final")):
        params = {"power": power, "select": select, "samples": 5}
        history = folder.add(
            "kappa", "power_iteration", "gap", f"{power}{select}", params=params, repeats=4
        )
        kappas[power, select] = [np.linalg.cond(V) for V in history.final["V"]]
    single = folder.add("many_draws", "power_iteration", "gap", params={"power": 0}, repeats=9)
    middle = sorted(np.linalg.cond(V) for V in single.final["V"])[4]
    rows = report.claims(folder.results("fig2", "fig3"))

    def holds(claim):
        return [row["holds"] for row in chosen(rows, claim=claim)]

    low, high = kappas[0, "initial"], kappas[1, "final"]
    assert holds("alpha1-raises-kappa") == [b > a for a, b in zip(low, high, strict=True)]
    assert holds("several-draws-lower-kappa") == [value < middle for value in low]


def test_fewer_communications_pair_the_repeats_and_the_ledger_counts_blocks(folder):
    tags = {"log10_threshold": -1.0, "printed_log10_threshold": -20.0}
    for variant, samples in (("one-draw", 1), ("best-of-20", 20)):
        folder.add("table2", "power_exact", "gap", variant, params={"samples": samples}, tags=tags)
    params = {"sigma_max": "reference", "rounds": 300}
    folder.add("table2", "wk2023", "gap", params=params, tags=tags, repeats=3)
    folder.add("fig2", "power_gd", "gap", params={"power": 1, "local_steps": 3})
    for rounds, alignment in ((2, "none"), (3, "procrustes")):
        params = {"rounds": rounds, "local_steps": 4, "alignment": alignment}
        params |= {"schedule": "constant"}
        folder.add("costs", "local_power", "gap", alignment, params=params)
    results = folder.results("many_draws")
    counts = {
        (row["method"], row["order"], row["convention"], row["repeat"]): row["rounds"]
        for row in report.communications(results)
    }
    rows = report.fewer(results)
    assert len(rows) == 2 * 3 * 2  # orders, floors, and the repeats that both have
    for row in rows:
        where = (row["order"], row["convention"], row["repeat"])
        ours, theirs = (
            math.inf if math.isnan(count) else count
            for count in (counts["power_exact-one-draw", *where], counts["wk2023", *where])
        )
        assert row["holds"] == (None if ours == theirs == math.inf else ours < theirs)
    assert {row["holds"] for row in rows if row["order"] == "printed"} == {None}
    at_once = chosen(report.communications(results), method="power_exact-best-of-20", order="code")
    assert all(row["rounds_at_once"] == 1 for row in at_once if row["rounds"] == 20)
    ledger = {(row["experiment"], row["variant"]): row for row in report.ledger(results)}
    costs = {("costs", "none"), ("costs", "procrustes")}
    power = {("fig2", "default"), ("table2", "one-draw"), ("table2", "best-of-20")}
    assert set(ledger) == costs | power
    assert [ledger[key]["alpha"] for key in sorted(costs)] == [1, 2]
    # What is aligned goes up a second time.
    assert [ledger[key]["blocks_per_exchange"] for key in sorted(costs)] == [2, 3]
    assert (ledger["fig2", "default"]["rounds"], ledger["fig2", "default"]["alpha"]) == (2, 1)
    assert ledger["fig2", "default"]["blocks_per_exchange"] == 2  # N d r, up and down, α + 1 times
    assert ledger["table2", "one-draw"]["blocks_per_exchange"] == 2
    assert ledger["table2", "best-of-20"]["rounds_of_one"] == 20


@pytest.mark.parametrize(("speed", "momentum", "holds"), [
    (2.0, False, True), (1.0, False, True), (0.9, False, False),
    (1.0, True, True), (0.8, True, False),
])  # fmt: skip
def test_theorem_1_compares_every_client_and_step_with_its_bound(bare, speed, momentum, holds):
    kappa, steps = 3.0, np.arange(40)
    rate = 1 - 1 / kappa if momentum else 1 - kappa**-2
    # The second client falls by the speed, and hides behind the first in their sum.
    above = np.stack([1e6 * rate ** (2 * steps), rate ** (speed * steps)], axis=1)
    history = made_up(kappa=np.full((2, 40), kappa), diverged=[[0] * 40, [0] * 39 + [1]])
    history.clients["client_excess"] = np.stack([above, np.full((40, 2), np.nan)])
    params = {"power": 0, "momentum": momentum, "local_steps": 39}
    bare.made("fig3", history=history, params=params)
    row, failed = report.theorem_1(bare.results("fig2"))
    worst = rate ** ((speed - 1) * steps[1:]) / (2 if momentum else 1)
    assert row["share"] == pytest.approx(worst.max(), rel=1e-12)
    assert (row["share"] <= 1 + 1e-12) == holds and np.isnan(failed["share"])
    assert (row["share_constant"] is None) != momentum


def test_theorem_1_leaves_out_steps_that_were_not_measured(bare):
    history = made_up(kappa=np.full((2, 9), 3.0))
    above = np.full((2, 9, 1), np.nan)
    above[:, 0], above[0, -1] = 7.0, 7.0 * (1 - 1 / 9) ** 9
    history.clients["client_excess"] = above
    params = {"power": 0, "momentum": False, "local_steps": 8}
    bare.made("fig3", history=history, params=params)
    row, nothing = report.theorem_1(bare.results("fig2"))
    assert row["share"] == pytest.approx(1 - 1 / 9) and nothing["share"] is None


def test_the_papers_runs_measure_every_step_of_theorem_1():
    plan = load_plan({"papers": ["factorization"]})
    cells = [cell for cell in plan.cells.values() if cell.experiment in ("fig2", "fig3")]
    assert cells and not any(cell.measured for cell in cells)


@pytest.mark.parametrize("kappa", [1.0, 1.5, 4.0, 100.0])
def test_the_constant_momentum_meets_the_accelerated_rate(kappa):
    assert theory.constant_momentum_share(kappa, 500, (kappa - 1) / (kappa + 1)) <= 1


@pytest.mark.parametrize("beta", [0.0, 0.99])
def test_other_momenta_do_not_meet_the_accelerated_rate(beta):
    # Plain descent shrinks the direction of κ⁻² by (1 − κ⁻²)²; with too much, errors shrink by β.
    assert theory.constant_momentum_share(4.0, 200, beta) > 1


def test_restarts_take_ten_draws_at_a_time(folder):
    histories = [
        folder.add("many_draws", "power_exact", "gap", f"alpha{k}", params={"power": k}, repeats=25)
        for k in (0, 1)
    ]
    rows = theory.restarts(folder.results())
    assert [(row["alpha"], row["repeat"]) for row in rows] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    sigma = np.array([5, 4, 3, 0.4, 0.3, 0.25, 0.2, 0.1, 0.05])
    tail = sum(s**2 * (25 - s**2) / 9 * (s / 3) ** 4 for s in sigma[3:])
    limit = 32 * math.log(4) * 3 * 4 * tail  # (1), by hand
    rates = [theory.kappa_bound(sigma, RANK, 9, k, 1 / 6, "body") for k in (0, 1)]
    for row in rows:
        alpha, draw = row["alpha"], 10 * row["repeat"]
        kappa, above = (
            histories[alpha].last(name) for name in ("kappa", "exact_excess")
        )  # of every draw
        assert row["kappa_squared"] == pytest.approx(kappa[draw] ** 2)
        assert row["excess"] == pytest.approx(2 * above[draw])
        assert row["rate_one"] == (kappa[draw] ** 2 < rates[alpha])
        assert 5 ** row["log5_excess"] == pytest.approx(row["excess"])
        assert row["kappa_order"] == RANK**2
        assert row["resolved"] == (alpha == 1)
        assert 5 ** row["log5_order"] == pytest.approx(9 * RANK**2 * 1e-6 ** (4 * alpha + 2))
        if alpha == 0:
            assert row["error_one"] is row["reduced"] is None
            continue
        assert row["error_one"] == (2 * above[draw] < limit)
        factor = above[draw] / histories[0].last("exact_excess")[draw]
        assert row["reduced"] == (factor <= (0.4 / 3) ** 4)


def test_no_draw_is_printed_for_a_probability_below_a_half():
    found = {row["probability"]: row["draws"] for row in theory.printed_draws()}
    assert found == {0.25: 0, 0.5: 1, 0.75: 2, 0.875: 3}  # ⌊−log₂(1 − P)⌋


def test_bounds_count_the_draws_that_exceed_them(folder, clients):
    S = np.vstack(clients)
    history = folder.add("many_draws", "power_exact", "gap", params={"power": 1}, repeats=25)
    rows = report.bounds(folder.results())
    assert len(rows) == 2 * 2 * len(theory.PROBABILITIES)
    sigma = np.linalg.svd(S)[1]
    kappas = np.array([np.linalg.cond(V) for V in history.final["V"]]) ** 2
    excesses = np.array(
        [
            np.linalg.norm(S - S @ V @ np.linalg.pinv(V)) ** 2 - np.sum(sigma[RANK:] ** 2)
            for V in np.linalg.qr(history.final["V"])[0]
        ]
    )
    for row in rows:
        if row["theorem"] == 2:
            bound = theory.kappa_bound(sigma, RANK, 9, 1, row["p"], row["version"])
            values, factor = kappas, 3
        else:
            bound = theory.excess_bound(sigma, RANK, 1, row["p"], row["version"])
            values, factor = excesses, 2
        assert row["bound"] == pytest.approx(bound, rel=1e-9)
        assert row["allowed"] == pytest.approx(factor * row["p"])
        assert row["exceeded"] == np.mean(values >= bound)
        assert row["median"] == pytest.approx(np.median(values), rel=1e-6)
        assert row["draws"] == 25
        end = {"body": "", "appendix": "_proof"}[row["version"]]
        largest = [
            draw[f"theorem_{row['theorem']}{end}"] for draw in theory.draws(folder.results())
        ]
        assert [p >= row["p"] for p in largest] == (values < bound).tolist()


def test_a_draw_that_failed_keeps_no_bound(bare):
    history = made_up(kappa=[[2.0], [1e9], [np.nan]], exact_excess=[[0.0], [0.0], [np.nan]])
    history.reference["singular_values"] = np.array([2.0, 1.0, 0.0])
    history.about["problem"] = {"n_features": 3}
    params = {"n_components": 1, "power": 0}
    bare.made("many_draws", algorithm="power_exact", params=params, history=history)
    rows = theory.draws(bare.results())
    assert [row["theorem_2"] for row in rows] == [0.2, 0, 0]
    assert [row["theorem_3"] for row in rows] == [0.2, 0.2, 0]
    (line,) = report.corollary_2(bare.results())
    # d r² ξ^{4α+2}
    assert line["formula_noise"] == pytest.approx(3e-12)
    assert line["formula_sigma"] == 3.0


# --- points read from print ---------------------------------------------------------------------


def test_figure_2_joins_fifty_draws_by_lines(bare, monkeypatch):
    points = {"alpha0-gd": [0.2, 0.35, 0.95], "alpha0-exact": [0.35], "svd-floor": [0.35]}
    monkeypatch.setattr(panels, "printed_points", lambda panel: points)
    x = np.concatenate([np.linspace(0.3, 0.9, 50), np.linspace(0.1, 0.9, 50)])
    loss = 10 ** (1 - 4 * x)  # its logarithm is a line, so that no figure differs from it
    columns = {"objective": loss[:, None], "exact_objective": loss[:, None] / 100}
    history = made_up(kappa=x[:, None] ** -0.5, **columns)
    history.reference["singular_values"] = np.array([1.0] * RANK + [0.1, 0.1])
    params = {"power": 0, "local_steps": 3}
    bare.made("fig2_again", history=history, params=params)
    found = {
        (row["curve"], row["x"], row["repeat"]): row["log10_loss"]
        for row in panels.figure_2_panel(bare.results(), "fig2a", "synthetic")
    }
    assert found == {
        ("alpha0-gd", 0.95, 0): None,
        ("alpha0-gd", 0.2, 1): pytest.approx(0.2),  # the first figure has no such draw
        **{("alpha0-gd", 0.35, k): pytest.approx(-0.4) for k in (0, 1)},
        **{("alpha0-exact", 0.35, k): pytest.approx(-2.4) for k in (0, 1)},
        **{("svd-floor", 0.35, k): pytest.approx(-2) for k in (0, 1)},
    }


def test_figure_3_is_read_between_steps(bare, monkeypatch):
    points = {
        f"alpha{k}-{kind}": [0.5, 7.0] for k in (0, 1) for kind in ("gd", "momentum", "exact")
    }
    monkeypatch.setattr(panels, "printed_points", lambda panel: points)
    for power, select in ((0, "final"), (1, "final"), (1, "initial")):
        history = made_up(objective=[[100.0, 1.0, 1.0]], exact_objective=[[0.1, 0.1, 0.1]])
        history.reference["singular_values"] = np.ones(5)
        params = {"power": power, "select": select, "momentum": True, "local_steps": 2}
        name = f"{power}{select}"
        bare.made("fig3", name, history=history, params=params)
    rows = panels.figure_3_panel(bare.results(), "fig3a", "synthetic")
    found = {(row["select"], row["curve"], row["x"]): row["log10_loss"] for row in rows}
    assert len(rows) == len(found) == 2 * 2 * 2 * 2
    assert [row["log10_norm"] for row in rows if row["log10_loss"] is not None] == pytest.approx(
        [row["log10_loss"] + math.log10(2) for row in rows if row["log10_loss"] is not None]
    )
    for (_, curve, x), loss in found.items():
        inside = pytest.approx(-1 if curve.endswith("exact") else 1)
        assert loss == (inside if x == 0.5 else None)  # two steps


@pytest.mark.parametrize("panel", ["fig2a", "fig2b", "fig3a", "fig3b", "fig3c", "fig3d"])
def test_printed_points_are_those_of_curves_that_are_drawn(panel):
    known = {f"alpha{k}-{kind}" for k in (0, 1) for kind in ("gd", "momentum", "exact")}
    found = panels.printed_points(panel)
    assert found and found.keys() <= known | {"svd-floor"}
    assert all(0 <= x <= (1 if "fig2" in panel else 500) for xs in found.values() for x in xs)


OF_U = ("client_rank", "stacked_rank", "client_zeros", "client_size")


def test_remarks_count_the_steps_until_nothing_changes(bare):
    bare.made(
        "remarks",
        objective=[[9, 4, 2, 2, 2], [9, 2 + 1e-8, 2 + 1e-9, 2 - 1e-9, 2]],
        exact_objective=np.ones((2, 5)),
        kappa=np.full((2, 5), 3.0),
        **dict.fromkeys(OF_U, np.full((2, 5), np.nan)),
    )
    rows = report.remarks(bare.results())
    assert [(r["steps"], r["loss_over_exact"], r["kappa"]) for r in rows] == [(2, 2, 3), (2, 2, 3)]
    assert [(r["rank_share"], r["zeros"], r["size_share"]) for r in rows] == [(None,) * 3] * 2


def test_a_repeat_that_failed_is_no_repeat_without_a_measure(bare):
    """Its NaN counts against what is said of U; those of a method that holds no U say nothing."""
    lost = [[4.0, np.nan], [4.0, 2.0]]
    bare.made(
        "remarks", "l1", algorithm="power_prox", params={"strength": 1.0}, objective=lost,
        exact_objective=np.ones((2, 2)), kappa=np.ones((2, 2)), diverged=[[0, 1], [0, 0]],
        **dict.fromkeys(OF_U, np.array(lost)),
    )  # fmt: skip
    failed, whole = report.remarks(bare.results())
    assert np.isnan(failed["steps"]) and whole["steps"] == 1
    for name in ("rank_share", "stacked_share", "zeros"):
        assert np.isnan(failed[name]) and whole[name] > 0
    assert whole["size_share"] is None  # without the run that it is compared with


def test_remarks_measure_u_against_that_without_a_penalty(tmp_path):
    """By hand: with an orthonormal V every penalty ends at its proximal map of U without one."""
    rng = np.random.default_rng(3)
    clients = [rng.standard_normal((n, 8)) for n in (15, 20)]
    measures = ["objective", "exact_objective", "kappa", *OF_U]
    folder = Folder(tmp_path, "factorization", {"n_components": RANK}, measures)
    folder.add_problem("gap", clients)
    fixed = {"power": 1, "orthonormalise": True, "local_steps": 3}
    for variant, own in {
        "none": {},
        "l1": {"penalty": "l1", "strength": 1.5},
        "l2": {"strength": 0.5},
        "nuclear": {"penalty": "nuclear", "strength": 4.5},
    }.items():
        ended = folder.add("remarks", "power_prox", "gap", variant, params=fixed | own)
    rows = {(r["variant"], r["repeat"]): r for r in report.remarks(folder.results())}
    assert rows["none", 0]["size_share"] == 1
    assert rows["l2", 1]["size_share"] == pytest.approx(1 / 1.5)
    for repeat, V in enumerate(ended.final["V"]):  # the same V for all
        plain = [S @ V for S in clients]
        zeros = np.vstack([np.abs(U) <= 1.5 for U in plain])
        assert rows["l1", repeat]["zeros"] == pytest.approx(zeros.mean())
        ranks = [np.sum(np.linalg.svd(U)[1] > 4.5) for U in plain]
        assert 0 < sum(ranks) < 2 * RANK
        assert rows["nuclear", repeat]["rank_share"] == pytest.approx(np.mean(ranks) / RANK)
        assert max(ranks) / RANK <= rows["nuclear", repeat]["stacked_share"] <= 1
        assert (rows["none", repeat]["zeros"], rows["none", repeat]["rank_share"]) == (0, 1)

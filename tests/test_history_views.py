"""`fedcore.History`: its plot, its data frame, and one run as a history."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import fedcore
from fedcore.errors import InputError
from fedcore.reports.comparison import figure
from fedcore.reports.description import describe
from fedcore.reports.terminal import one_run, side_by_side
from refused import refused


@pytest.fixture
def uneven():
    """Two repeats, of which the second ended early."""
    columns = {
        "iteration": np.array([[0, 1, 2], [0, 1, -1]]),
        "round": np.array([[0, 1, 2], [0, 1, -1]]),
        "objective": np.array([[4.0, 2.0, 1.0], [8.0, 2.0, np.nan]]),
    }
    problem = {"name": "p", "status": "synthetic"}
    return fedcore.History(columns, about={"algorithm": "ssi", "problem": problem})


def test_a_data_frame_has_a_row_for_every_record(uneven):
    pytest.importorskip("pandas")
    frame = uneven.to_frame()
    assert list(frame.columns) == ["repeat", "iteration", "round", "objective"]
    assert frame["repeat"].tolist() == [0, 0, 0, 1, 1]
    assert frame["objective"].tolist() == [4.0, 2.0, 1.0, 8.0, 2.0]
    assert frame["round"].dtype == np.int64
    assert frame.groupby("repeat")["objective"].last().tolist() == [1.0, 2.0]


def test_a_plot_draws_the_median_of_each_metric_and_is_saved_where_asked(uneven, tmp_path):
    figure = uneven.plot(tmp_path / "loss", against=["round"], metrics=["objective"])
    (ax,) = figure.axes
    (line,) = (line for line in ax.lines if line.get_label() == "ssi")
    np.testing.assert_array_equal(line.get_xydata(), [[0, 6], [1, 2], [2, 1]])
    assert ax.get_xlabel() == "communication rounds"
    assert sorted(file.name for file in tmp_path.glob("loss.p*")) == ["loss.pdf", "loss.png"]
    assert (
        uneven.plot(against="iteration", metrics="objective").axes[0].get_xlabel() == "iterations"
    )
    assert len(uneven.plot(against=None, metrics=None).axes) == 1
    for options, name in (({"against": "rounds"}, "'round'"), ({"metrics": ["ob"]}, "'ob'")):
        with pytest.raises(InputError, match=name):
            uneven.plot(**options)


def test_a_run_has_a_history_of_one_repeat_that_is_indexed_by_record(clients, tmp_path):
    result = fedcore.run("analyze_gauss", clients, 2, clip=True, epsilon=0.5, delta=1e-5)
    found = result.history
    assert isinstance(found, fedcore.History) and found.repeats == 1
    assert found.released == result.released
    for name, values in found.items():
        np.testing.assert_array_equal(found.columns[name], [values])
        assert found.last(name) == values[-1]
    assert found.get("no such column") is None and "round" in found
    assert "<td>objective</td>" in found._repr_html_()
    labels = [ax.get_ylabel() for ax in found.plot().axes]
    assert labels and all(label.endswith("(not released)") for label in labels)
    found.save(tmp_path / "run.h5")
    loaded = fedcore.History.load(tmp_path / "run.h5")
    np.testing.assert_array_equal(loaded["round"][0], found["round"])
    refused(found.released_alone().plot, InputError, "not its released_alone")
    loaded.released_alone().export(tmp_path / "run.csv")
    assert "objective" not in (tmp_path / "run.csv").read_text()


SEEDS = (
    7, np.int64(7), np.random.SeedSequence(7), np.random.SeedSequence(np.array([1, 2])),
    np.random.SeedSequence(np.int64(7), spawn_key=(np.int64(1),)), np.random.SeedSequence(),
)  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_a_saved_run_says_how_it_was_made(clients, tmp_path, seed):
    start = np.eye(9)[:, :2]
    found = fedcore.run("ssi", clients, np.int64(2), seed=seed, rounds=np.int64(5), start=start)
    found.history.save(tmp_path / "run.h5")
    told = describe(fedcore.History.load(tmp_path / "run.h5"))
    assert told["params"]["n_components"] == 2 and told["params"]["rounds"] == 5
    assert told["params"]["start"] == "given" and told["params"]["tol"] == 1e-8
    again = np.random.SeedSequence(told["seed"]["master"], spawn_key=told["seed"]["spawn_key"])
    own = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    assert again.generate_state(2).tolist() == own.generate_state(2).tolist()
    assert told["problem"]["n_samples"] == sum(map(len, clients))
    assert f"own data: 4 clients, {sum(map(len, clients))} samples, 9 features" in one_run(told)


@pytest.mark.parametrize("center", [False, True])
def test_what_is_shown_of_a_run_says_whether_the_mean_was_taken_off(clients, center):
    for history in (
        fedcore.run("ssi", clients, 2, center=center).history,
        fedcore.FederatedPCA(2, center=center).fit(clients).history_,
    ):
        assert describe(history)["centred"] == center


def test_a_private_fit_does_not_tell_the_number_of_samples(clients, tmp_path):
    fit = fedcore.FederatedPCA(2, epsilon=5, delta=1e-6, bounds=(-9, 9)).fit(clients)
    assert "n_samples" not in fit.history_.about["problem"]
    fit.history_.save(tmp_path / "fit.h5")
    assert b"n_samples" not in (tmp_path / "fit.h5").read_bytes()


def test_columns_of_a_users_own_can_be_shown(uneven):
    told = describe(uneven)
    assert "objective" in one_run(told) and "ledger" not in one_run(told)
    assert "objective" in side_by_side({"a": told, "b": told})


def test_a_figure_has_one_ending_and_something_to_draw(uneven, tmp_path):
    uneven.plot(tmp_path / "loss.png")
    assert sorted(file.name for file in tmp_path.glob("loss*")) == ["loss.pdf", "loss.png"]
    bare = {name: values for name, values in uneven.columns.items() if name != "objective"}
    for call in (
        partial(uneven.plot, tmp_path / "loss.svg"), partial(uneven.plot, against="epsilon"),
        fedcore.History(bare, about=uneven.about).plot,
    ):  # fmt: skip
        with pytest.raises(InputError):
            call()


def test_a_title_names_the_data_if_all_curves_have_the_same(uneven):
    other = fedcore.History(
        uneven.columns, about=uneven.about | {"problem": {"name": "q", "status": "synthetic"}}
    )
    for histories, named in (({"a": uneven, "b": other}, False), ({"a": uneven}, True)):
        (ax,) = figure(histories).axes
        assert ("p" in ax.get_title(loc="left").replace("[synthetic data]", "").split()) == named


def test_a_history_without_rounds_is_drawn_against_its_iterations(uneven):
    columns = {name: uneven.columns[name] for name in ("iteration", "objective")}
    (ax,) = fedcore.History(columns).plot().axes
    assert ax.get_xlabel() == "iterations"


def test_a_run_of_data_frames_keeps_the_names_of_their_columns():
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("xarray")
    rows = np.random.default_rng(0).standard_normal((20, 3))
    frame = pandas.DataFrame(rows, columns=["age", "dose", "weight"])
    result = fedcore.run("block_krylov", [frame], 2)
    tree = result.history.to_xarray()
    assert tree.coords["feature"].values.tolist() == ["age", "dose", "weight"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_exported_table_has_a_row_for_every_record_and_all_digits(uneven, tmp_path, ending):
    pandas = pytest.importorskip("pandas")
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    uneven.columns["objective"][0] = np.random.default_rng(0).standard_normal(3) * [
        1e-300,
        1,
        1e300,
    ]
    path = tmp_path / f"run.{ending}"
    uneven.export(path)
    read = {"csv": partial(pandas.read_csv, engine="python"), "parquet": pandas.read_parquet}[
        ending
    ]
    pandas.testing.assert_frame_equal(read(path), uneven.to_frame(), check_exact=True)
    before = path.read_bytes()
    refused(lambda: uneven.export(path), InputError, str(path))
    assert path.read_bytes() == before
    refused(lambda: uneven.export(tmp_path / "run.xlsx"), InputError, "run.xlsx")


def test_a_notebook_shows_the_last_record_of_each_repeat(uneven):
    cells = uneven._repr_html_().split("<td>objective</td>")[1]
    assert cells.startswith("<td>1.0</td><td>2.0</td>")


def test_xarray_has_the_names_of_columns(uneven):
    pytest.importorskip("xarray")
    uneven.final["mean"] = np.arange(4.0).reshape(2, 2)
    uneven.about["features"] = ["age", "dose"]
    mean = uneven.to_xarray()["final"]["mean"]
    assert mean.sel(feature="dose").values.tolist() == [1.0, 3.0]


def test_a_history_is_a_mapping_of_its_columns(uneven):
    assert "round" in uneven and "rounds" not in uneven
    assert list(uneven) == [*uneven.columns] == [*uneven.keys()] and len(uneven) == 3
    assert uneven.get("rounds") is None and uneven.get("round") is uneven["round"]
    other = fedcore.History(dict(uneven.columns))
    assert uneven == uneven and uneven != other and len({uneven, other}) == 2


def test_a_history_without_privacy_has_nothing_that_was_released_alone(uneven):
    refused(uneven.released_alone, InputError, "not of a private run")
    refused(lambda: uneven.protected, InputError, "not of a private run")

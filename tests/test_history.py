from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

import h5py
import numpy as np
import pytest
import xarray

from fedcore import algorithms, metrics
from fedcore.errors import HistoryError, InputError
from fedcore.federation.ledger import Ledger
from fedcore.files.history_schema import VERSION as SCHEMA
from fedcore.history import History, units_of
from fedcore.metrics import Metric
from fedcore.privacy.mechanisms import Privacy
from fedcore.recorder import Recorder, Recording
from fedcore.runs import execute
from refused import refused

MEASURES = [metrics.get("objective"), metrics.get("kappa")]


def runs(problem, lengths, iterates="last"):
    """Recorders of runs of `power_gd` that are stopped after these numbers of steps."""
    algorithm = algorithms.get("power_gd")
    settings = algorithm.params({"n_components": 3, "local_steps": 20})
    return [
        execute(
            algorithm, problem, settings, seed,
            Recording(MEASURES, iterates, stop=lambda row, most=most: row["iteration"] >= most),
        )
        for seed, most in enumerate(lengths)
    ]  # fmt: skip


def history_of(problem, lengths=(4, 2), iterates="last"):
    units = units_of(MEASURES, algorithms.get("power_gd").columns)
    answer = {"singular_values": problem.singular_values}
    repeats = [
        History.from_run(*run, units, reference=answer) for run in runs(problem, lengths, iterates)
    ]
    about = {"paper": "factorization", "name": "σ ≥ 0", "params": {"power": 1}}
    return History.joined(repeats, about, units)


@pytest.fixture
def history(problem):
    return history_of(problem, iterates="all")


@pytest.fixture
def file(history, tmp_path):
    path = tmp_path / "cell.h5"
    history.save(path)
    return path


def test_what_is_loaded_is_what_was_saved(history, file):
    loaded = History.load(file)
    for group in ("columns", "final", "iterates", "reference"):
        saved, read = getattr(history, group), getattr(loaded, group)
        assert saved.keys() == read.keys()
        for name in saved:
            np.testing.assert_array_equal(read[name], saved[name])
            assert read[name].dtype == saved[name].dtype
    assert loaded.about == history.about
    assert loaded.units == {name: history.units[name] for name in history.columns}
    assert loaded.repeats == 2 and set(history.final) == {"V", "exponent"}  # no single client's


def test_every_dataset_says_its_unit_and_what_it_is(file):
    seen = []

    def look(name, item):
        if isinstance(item, h5py.Dataset):
            seen.append(name)
            assert item.attrs["units"] and item.attrs["long_name"]
            if item.dtype.kind == "f":
                assert np.isnan(item.attrs["_FillValue"])

    with h5py.File(file) as opened:
        opened.visititems(look)
        assert dict(opened.attrs)["schema"] == SCHEMA
        assert {"title", "references", "source", "license", "documentation"} <= set(opened.attrs)
    assert {"history/round", "history/objective", "final/V", "iterates/shared"} <= set(seen)


def test_short_repeats_are_padded_and_last_finds_their_end(history, problem):
    (first, _), (second, _) = runs(problem, (4, 2))
    np.testing.assert_array_equal(history["iteration"], [[0, 1, 2, 3, 4], [0, 1, 2, -1, -1]])
    assert (history["bytes_up"][1, 3:] == -1).all()
    assert np.isnan(history["objective"][1, 3:]).all()
    np.testing.assert_array_equal(history["objective"][0], first.columns()["objective"])
    np.testing.assert_array_equal(history["objective"][1, :3], second.columns()["objective"])
    np.testing.assert_array_equal(history.last("iteration"), [4, 2])
    ends = first.columns()["objective"][-1], second.columns()["objective"][-1]
    np.testing.assert_array_equal(history.last("objective"), ends)
    np.testing.assert_array_equal(history.iterates["iteration"], history["iteration"])
    assert history.iterates["shared"].shape == (2, 5, 9, 3)
    assert np.isnan(history.iterates["shared"][1, 3:]).all()


def test_a_kept_iterate_does_not_change_when_the_algorithm_overwrites_it(problem):
    recorder = Recorder(problem, Ledger(), Recording([metrics.get("objective")], "all"))
    basis = np.eye(9)[:, :3].copy()
    recorder(0, basis=basis)
    basis[:] = np.eye(9)[:, 3:6]
    recorder(1, basis=basis)
    recorder.end({})
    first, last = recorder.snapshots.kept
    np.testing.assert_array_equal(first.shared, np.eye(9)[:, :3])
    np.testing.assert_array_equal(last.shared, np.eye(9)[:, 3:6])
    S = np.vstack(problem.clients)
    for row, left_out in zip(
        recorder.rows, (S[:, 3:], np.delete(S, [3, 4, 5], axis=1)), strict=True
    ):
        # Projection on coordinates: the loss is the energy of the others, up to rounding.
        assert row["objective"] == pytest.approx(0.5 * np.sum(left_out**2), rel=1e-13)


WHOLE = {  # a file that is whole, and whose content is that of no history of this version
    "older": (lambda opened: opened.attrs.modify("schema", SCHEMA - 1), f"schema {SCHEMA - 1}"),
    "newer": (lambda opened: opened.attrs.modify("schema", SCHEMA + 1), f"schema {SCHEMA + 1}"),
    **{f"no {name}": (lambda opened, name=name: opened.attrs.__delitem__(name), "not a whole")
       for name in ("schema", "about")},
    **{f"no {name}": (lambda opened, name=name: opened.__delitem__(name), "not a whole")
       for name in ("history", "history/iteration")},
}  # fmt: skip


@pytest.mark.parametrize("what", WHOLE)
def test_what_is_no_history_of_this_version(file, resealed, what):
    change, says = WHOLE[what]
    resealed(file, change)
    told = refused(lambda: History.load(file), HistoryError)
    message = str(told)
    assert message.startswith(str(file)) and says in message and "\n" not in message
    assert "delete" not in message  # it is of use to another version


@pytest.mark.parametrize(
    ("value", "finite", "marked"),
    [
        (np.nan, True, 1),
        (np.nan, False, 0),
        (np.inf, True, 1),
        (np.inf, False, 0),
        (1e308, True, 0),
    ],
)
def test_a_measure_that_is_not_finite_marks_the_run_and_ends_it(problem, value, finite, marked):
    def function(iterate, problem):
        return value

    metric = metrics.Metric("odd", "1", "as it comes", function, finite)
    recorder = Recorder(problem, Ledger(), Recording([metric]))
    assert recorder(0, basis=np.eye(9, 3)) == bool(marked)
    assert recorder.rows[0]["diverged"] == marked


ODD = [None, "1", 1j, np.ones(1), np.ones(3), [1.0]]


@pytest.mark.parametrize("value", [*ODD, KeyError("no such part")])
def test_a_measure_that_fails_or_gives_no_number_is_named(problem, value):
    def function(iterate, problem):
        if isinstance(value, Exception):
            raise value
        return value

    odd = Metric("odd", "1", "as it comes", function)
    recorder = Recorder(problem, Ledger(), Recording([odd]))
    refused(lambda: recorder(0, basis=np.eye(9, 3)), InputError, "'odd'")


def test_names_that_are_not_there(problem, history):
    refused(lambda: history["objektive"], InputError, "'objektive'", "'objective'")
    keep = partial(Recorder, problem, Ledger(), Recording(iterates="lag"))
    refused(keep, InputError, "iterates = 'lag'")
    for words in ((None, "1", ""), ("odd", None, ""), ("odd", "1", 3)):
        with pytest.raises(InputError):
            Metric(*words, lambda iterate, problem: 1.0)


def test_a_measure_does_not_end_a_private_run(problem):
    """It is an exact function of the data, and the length of the run would give it away."""
    ledger = Ledger()
    ledger.privacy = Privacy(1, 1e-5, "replace_one")
    metric = metrics.Metric("odd", "1", "as it comes", lambda iterate, problem: np.nan)
    recorder = Recorder(problem, ledger, Recording([metric]))
    assert not recorder(0, basis=np.eye(9, 3))
    assert recorder.rows[0]["diverged"] == 0


def test_expensive_measures_are_computed_now_and_then_and_at_the_end(problem):
    one = Metric("one", "1", "", lambda iterate, problem: 1.0)
    recorder = Recorder(problem, Ledger(), Recording([one], measured={"every": 4, "last": 2}))
    recorder(0, basis=np.eye(9))
    for k in recorder.rounds(11):
        recorder(k, basis=np.eye(9))
    recorder(12, basis=np.eye(9))
    done = [row["iteration"] for row in recorder.rows if row["one"] == 1.0]
    assert done == [0, 4, 8, 10, 11, 12]
    assert not recorder.columns()["diverged"].any() and not recorder.ended
    recorder(13, basis=np.eye(9) * np.nan)
    assert recorder.ended and recorder.rows[-1]["diverged"] == 1


def test_recording_does_not_count_as_time_of_the_run(problem):
    """An algorithm that works for 0.1 s before each record, and a measure that takes 0.3 s."""

    def busy(seconds):
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass

    def slow(iterate, problem):
        busy(0.3)
        return 0.0

    measured = replace(metrics.get("objective"), function=slow)
    recorder = Recorder(problem, Ledger(), Recording([measured]))
    for k in range(3):
        busy(0.1)
        recorder(k, basis=np.eye(9)[:, :1])
    np.testing.assert_allclose(recorder.seconds, [0.1, 0.2, 0.3], atol=0.05)


def test_xarray_reads_named_dimensions_without_options(history, file):
    tree = xarray.open_datatree(file)
    assert tree["history"]["objective"].dims == ("repeat", "record")
    assert tree["iterates"]["shared"].dims == ("repeat", "snapshot", "feature", "component")
    assert tree["final"]["V"].dims == ("repeat", "feature", "component")
    for group in ("history", "iterates", "final", "reference"):
        alone = xarray.open_dataset(file, group=group)
        assert not [name for name in alone.dims if "phony" in str(name)]
        for name, values in alone.items():
            assert values.attrs["units"] and values.attrs["long_name"], name
    shared = tree["iterates"]["shared"].sel(repeat=1)
    assert np.isfinite(shared.isel(snapshot=2)).all() and np.isnan(shared.isel(snapshot=3)).all()
    assert tree.attrs["schema"] == SCHEMA and "commit" in tree.attrs["source"]


def test_the_tree_of_a_history_is_that_of_its_file(history, file):
    from fedcore import History as Public

    read = xarray.open_datatree(file)
    made = Public.load(file).to_xarray()
    assert set(made.groups) == set(read.groups)
    assert read.attrs.pop("sealed")
    for group in made.groups:
        xarray.testing.assert_identical(made[group].to_dataset(), read[group].to_dataset())


def test_the_dimensions_of_a_network_take_no_room(tmp_path):
    weights = np.random.default_rng(0).standard_normal((1, 200_000))
    columns = {"iteration": np.zeros((1, 1), int)}
    History(columns, final={"parameters": weights}, about={}).save(tmp_path / "h.h5")
    assert (tmp_path / "h.h5").stat().st_size < weights.nbytes + 50_000
    with h5py.File(tmp_path / "h.h5") as file:
        (place,) = file["final/parameters"].dims[1].values()
        np.testing.assert_array_equal(place, np.arange(200_000))
    np.testing.assert_array_equal(History.load(tmp_path / "h.h5").final["parameters"], weights)

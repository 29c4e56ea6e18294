"""Figures: what is drawn is the data, what is bent is told, and equal input gives equal bytes."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats

from fedcore import algorithms
from fedcore.errors import InputError
from fedcore.history import History
from fedcore.reports import curve_styles, plotting
from refused import refused


@pytest.fixture
def ax():
    with plotting.style():
        yield Figure().subplots()


def made_with(status):
    return History({}, about={"problem": {"status": status}})


def edges(ax, collection=0):
    """Lower and upper edge of a band, one value per record."""
    points = ax.collections[collection].get_paths()[0].vertices
    by_x = {x: points[points[:, 0] == x, 1] for x in np.unique(points[:, 0])}
    return np.array([y.min() for y in by_x.values()]), np.array([y.max() for y in by_x.values()])


def told(ax):
    return [text.get_text() for text in ax.texts]


def test_band_is_the_range_of_the_repeats(ax):
    y = np.random.default_rng(0).standard_normal((7, 20))
    line = plotting.curve(ax, np.arange(20), y, label="a")
    np.testing.assert_array_equal(line.get_ydata(), np.median(y, axis=0))
    low, high = edges(ax)
    np.testing.assert_array_equal(low, y.min(axis=0))
    np.testing.assert_array_equal(high, y.max(axis=0))
    assert told(ax) == []


def test_band_of_95_percent_or_none(ax):
    y = np.random.default_rng(0).standard_normal((50, 6))
    plotting.curve(ax, np.arange(6), y, label="a", band="95%")
    np.testing.assert_allclose(edges(ax)[0], np.percentile(y, 2.5, axis=0))
    plotting.curve(ax, np.arange(6), y, label="b", band=False)
    plotting.curve(ax, np.arange(6), y[0], label="one repeat has no band")
    assert len(ax.collections) == 1


@pytest.mark.parametrize("far", [1e30, np.inf, 1e-30])
def test_a_repeat_far_away_leaves_a_logarithmic_axis_to_the_curve(ax, far):
    y = np.array([[1.0, 0.1, 0.01]] * 4 + [[1.0, far, 0.01]])
    plotting.log10_axis(ax)
    plotting.curve(ax, np.arange(3), y, label="a")
    low, high = ax.get_ylim()
    assert 1e-5 < low < 0.01 and 1.0 < high < 1e3  # the curve's two decades, and as many beside
    if np.isfinite(far):
        assert edges(ax)[far > 1][1] == far


def test_mean_and_its_confidence_interval_are_those_of_scipy(ax):
    y = np.random.default_rng(0).standard_normal((10, 6))
    y[3, 4:] = np.nan  # a repeat that diverged
    line = plotting.curve(ax, np.arange(6), y, label="a", band="mean")
    np.testing.assert_allclose(line.get_ydata(), np.nanmean(y, axis=0))
    for record, (low, high) in enumerate(zip(*edges(ax), strict=True)):
        known = y[~np.isnan(y[:, record]), record]
        expected = stats.t.interval(0.95, len(known) - 1, known.mean(), stats.sem(known))
        np.testing.assert_allclose((low, high), expected)


def test_values_that_a_logarithm_has_not(ax):
    plotting.log10_axis(ax)
    y = np.array([[1.0, 0.5, 0.0], [2.0, 0.25, -3.0]])
    line = plotting.curve(ax, [0, 1, 2], y, label="a")
    np.testing.assert_array_equal(line.get_ydata(), [1.5, 0.375, 0.25])
    assert len(told(ax)) == 1
    ax.figure.draw_without_rendering()
    assert ax.get_ylim()[0] > 0


def test_a_floor_is_told_once(ax):
    plotting.log10_axis(ax)
    for label in "ab":
        line = plotting.curve(ax, [0, 1, 2], [[1.0, 1e-20, 0.0]] * 2, label=label, floor=1e-16)
        np.testing.assert_array_equal(line.get_ydata(), [1.0, 1e-16, 1e-16])
    assert len(told(ax)) == 1 and "1e-16" in told(ax)[0]


def test_short_repeats(ax):
    x = np.array([[0, 1, 2, 3], [0, 1, -1, -1]])  # as a history pads them
    y = np.array([[4.0, 3.0, 2.0, np.nan], [6.0, 5.0, np.nan, np.nan]])
    line = plotting.curve(ax, x, y, label="a")
    np.testing.assert_array_equal(line.get_xdata(), [0, 1, 2])
    np.testing.assert_array_equal(line.get_ydata(), [5, 4, 2])


def test_one_record_is_a_point_with_its_range(ax):
    line = plotting.curve(ax, [[5], [5]], [[1.0], [3.0]], label="a")
    assert line.get_marker() == "o"
    np.testing.assert_array_equal(ax.collections[0].get_segments()[0], [[5, 1], [5, 3]])


@pytest.mark.parametrize(
    ("x", "y", "options"),
    [
        ([[0, 1], [0, 2]], [[1.0, 1.0], [1.0, 1.0]], {}),  # repeats at other places
        ([0, 1, 2], [[1.0, 1.0]], {}),
        ([0, 1], [[np.nan, np.nan]], {}),
        ([], np.zeros((2, 0)), {}),
        ([0, 1], [1.0, 1.0], {"band": "90%"}),
        ([0, 1], [1.0, 1.0], {"floor": 0.0}),
    ],
)
def test_curve_refuses(ax, x, y, options):
    plotting.log10_axis(ax)
    refused(lambda: plotting.curve(ax, x, y, label="name", **options), InputError)


@pytest.mark.parametrize(
    ("statuses", "shown"),
    [
        ([], "Loss"),
        (["official", "synthetic"], "Loss"),
        (["official", "surrogate"], "Loss [surrogate data]"),
        (["rebuilt"], "Loss [rebuilt data]"),
        (["rebuilt", "surrogate"], "Loss [surrogate data] [rebuilt data]"),
        ([None], "Loss [data of unknown origin]"),
    ],
)
def test_title_names_the_data(ax, statuses, shown):
    plotting.title(ax, "Loss", *map(made_with, statuses))
    assert ax.get_title(loc="left") == shown


def labels(ax, which):
    """Return what stands beside the ticks that are seen, by value."""
    ax.figure.draw_without_rendering()
    axis = ax.yaxis if which == "y" else ax.xaxis
    low, high = axis.get_view_interval()
    found = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    seen = [tick for tick in found if low <= tick.get_loc() <= high and tick.label1.get_text()]
    return {tick.get_loc(): tick.label1 for tick in seen}


@pytest.mark.parametrize(
    ("ends", "shown"),
    [
        ((7, 60), {10: "10", 20: "20", 50: "50"}),
        ((0.05, 0.6), {0.05: "0.05", 0.1: "0.1", 0.2: "0.2", 0.5: "0.5"}),
        ((10.5, 18.5), {12: "12", 14: "14", 16: "16", 18: "18"}),
        ((1e-8, 1), {10.0**n: rf"$\mathdefault{{10^{{{n}}}}}$" for n in range(-8, 1, 2)}),
        ((2e5, 9e5), {n: rf"$\mathdefault{{{n / 1e5:g}\times10^{{5}}}}$" for n in (2e5, 5e5)}),
    ],
)
@pytest.mark.parametrize("which", "xy")
def test_a_short_logarithmic_axis_has_plain_numbers(ax, which, ends, shown):
    plotting.log10_axis(ax, which)
    getattr(ax, f"set_{which}lim")(*ends)
    found = {value: label.get_text() for value, label in labels(ax, which).items()}
    found = {float(f"{value:.6g}"): text for value, text in found.items()}
    assert {value: found.get(value) for value in shown} == shown
    if ends[1] < 1e4:
        assert len(found) <= 9


def test_bytes_from_zero_keep_the_ticks_of_their_scale():
    with plotting.style():
        ax = Figure(figsize=(3.5, 3.0)).subplots()
        plotting.log10_axis(ax)
        plotting.curve(ax, [0, 160, 480, 11800], [1.0, 0.5, 0.2, 0.1], label="a")
        plotting.from_zero(ax, 160.0)
        plotting.bytes_axis(ax)
    found = [label for _, label in sorted(labels(ax, "x").items())]
    assert [label.get_text() for label in found] == ["0 B", "100 B", "1 kB", "10 kB"]
    boxes = [label.get_window_extent() for label in found]
    assert all(a.x1 < b.x0 for a, b in pairwise(boxes))


def test_curves_of_one_point_and_one_colour_have_marks_of_their_own(ax):
    """A method's variants differ by their line style alone, of which a point shows nothing."""
    styles = {*curve_styles.LINES.values(), (0, (3, 1, 1, 1))}
    lines = [
        plotting.curve(ax, [1], [[2.0]], label=f"{style}", color="blue", linestyle=style)
        for style in styles
    ]
    assert len({line.get_marker() for line in lines}) == len(styles) == 6
    assert plotting.curve(ax, [1, 2], [[2.0, 3.0]], label="two").get_marker() == "None"


def test_looks_are_stable_and_distinct():
    assert curve_styles.look("faps") == {"color": "#009E73", "linestyle": "--"}
    assert curve_styles.look("somebody_elses") == curve_styles.look("somebody_elses")
    saying = [name for name in algorithms.names() if algorithms.get(name).look]
    assert len(saying) > 20
    found = [tuple(curve_styles.look(name).values()) for name in saying]
    assert all(one != other for one, other in combinations(found, 2))


def test_a_quick_run_leaves_out_the_pdf(ax, tmp_path, monkeypatch):
    monkeypatch.setenv("FEDCORE_FIGURES", "png")
    plotting.curve(ax, [1, 2], [3.0, 4.0], label="a")
    plotting.save(ax.figure, tmp_path / "p")
    assert [file.name for file in tmp_path.glob("p.*")] == ["p.png"]


@pytest.mark.parametrize("line", ["", 3 * "word ", 40 * "word ", "a\tb", "one\n" + 30 * "a \tb "])
def test_title_line_corner_and_legend_stand_apart(tmp_path, line):
    with plotting.style():
        figure = Figure(figsize=(7.2, 2.5))
        for ax in figure.subplots(1, 2):
            ax.plot([0, 1], [1, 2], label="a")
            ax.set(title="(a)", xlabel="x")
        legend = figure.legend(loc="outside lower center")
    said = {"title": "Figure 1", "line": line, "corner": "full run"}
    plotting.save(figure, tmp_path / "p", [made_with("synthetic")], **said)
    boxes = [legend, *figure.texts, *figure.axes]
    boxes = [
        one.get_tightbbox() for one in boxes if one in figure.axes or one.get_window_extent().width
    ]
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


def test_a_figure_of_no_runs_says_so_in_its_file(tmp_path):
    shown = History({}, about={"experiment": "first", "problem": {"status": "synthetic"}})
    for runs in ([], [shown]):
        with plotting.style():
            figure = Figure()
            figure.subplots().plot([0, 1], [1, 2])
        png, _ = plotting.save(figure, tmp_path / "p", iter(runs), title="T")
        assert plotting.shows_nothing(png) == (not runs)


def test_gallery_keeps_what_a_full_run_drew(tmp_path, tool):
    kept_figures, kept = tool("kept_figures"), tmp_path / "kept"
    names = kept_figures.figures()["fedpower"]
    (kept / "fedpower").mkdir(parents=True)
    (kept / "fedpower" / "unknown.png").touch()
    for runs in ([made_with("synthetic")], []):  # the second run left out what the figure needs
        (tmp_path / "figures/fedpower").mkdir(parents=True, exist_ok=True)
        for name in names:
            with plotting.style():
                figure = Figure(figsize=(7.2, 3))
                figure.subplots().plot([0, 1], [1, 2])
            plotting.save(figure, tmp_path / "figures/fedpower" / name, runs)
        assert len(kept_figures.keep(tmp_path, kept)) == len(names) * len(runs)
        assert {file.stem for file in kept.glob("fedpower/*.png")} == set(names)

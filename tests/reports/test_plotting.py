"""Figures: what is drawn is the data, what is bent is told, and equal input gives equal bytes."""

import os
import subprocess
import sys
from itertools import combinations, pairwise

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats

from fedcore import algorithms
from fedcore.errors import InputError
from fedcore.history import History
from fedcore.reports import curve_styles, figure_files, plotting
from fedcore.reports.papers import fedrep


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


SAMPLE = """
import sys
import numpy as np
from matplotlib.figure import Figure
from fedcore.reports import plotting
y = np.exp(-np.arange(30) * np.array([[0.1], [0.2], [0.4]]))
with plotting.style():
    figure = Figure()
    ax = figure.subplots()
    plotting.log10_axis(ax)
    plotting.curve(ax, np.arange(30) * 1e5, y, label="a", floor=1e-3)
    plotting.scatter(ax, np.arange(3) * 1e6, y[:, 1], label="b")
    plotting.bytes_axis(ax)
    plotting.title(ax, "Title")
    plotting.legend(ax)
for path in sys.argv[1:]:
    plotting.save(figure, path)
"""


def test_same_bytes(tmp_path):
    for seed, names in (("0", ("a", "b")), ("1", ("c",))):
        subprocess.run(
            [sys.executable, "-c", SAMPLE, *(str(tmp_path / name) for name in names)],
            check=True, env=os.environ | {"PYTHONHASHSEED": seed, "SOURCE_DATE_EPOCH": seed},
        )  # fmt: skip
    for kind, start in (("png", b"\x89PNG"), ("pdf", b"%PDF")):
        first, again, other = (tmp_path.joinpath(f"{n}.{kind}").read_bytes() for n in "abc")
        assert first == again == other
        assert first.startswith(start)
        assert b"CreationDate" not in first and b"tEXt" not in first[:200]
    assert len(list(tmp_path.glob("[!.]*"))) == 6


def test_pyplot_is_not_imported():
    code = "import sys, fedcore.reports.plotting; print('matplotlib.pyplot' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "False\n"


def test_save_returns_its_paths_and_keeps_dots(tmp_path, ax):
    plotting.curve(ax, [0, 1], [1, 2], label="a")
    paths = plotting.save(ax.figure, tmp_path / "new" / "fig.4b")
    assert [path.name for path in paths] == ["fig.4b.png", "fig.4b.pdf"]
    assert all(path.is_file() for path in paths)


def test_style_is_the_same_for_all_and_leaves_no_trace():
    before = dict(matplotlib.rcParams)
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9}):
        with plotting.style():
            assert matplotlib.rcParams["font.size"] == 10
        assert matplotlib.rcParams["font.size"] == 30
    assert dict(matplotlib.rcParams) == before


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
    with pytest.raises(InputError, match="unknown band '90%'"):
        plotting.curve(ax, np.arange(6), y, label="c", band="90%")


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
    assert told(ax) == ["a: values ≤ 0 are drawn here"]
    ax.figure.draw_without_rendering()
    assert ax.get_ylim()[0] > 0


def test_a_floor_is_told_once(ax):
    plotting.log10_axis(ax)
    for label in "ab":
        line = plotting.curve(ax, [0, 1, 2], [[1.0, 1e-20, 0.0]] * 2, label=label, floor=1e-16)
        np.testing.assert_array_equal(line.get_ydata(), [1.0, 1e-16, 1e-16])
    assert told(ax) == ["values ≤ 1e-16 are drawn here"]
    with pytest.raises(InputError, match="above 0"):
        plotting.curve(ax, [0, 1], [1.0, 1.0], label="a", floor=0.0)


def test_a_linear_axis_shows_all(ax):
    line = plotting.curve(ax, [0, 1], [[-1.0, 0.0]], label="a")
    np.testing.assert_array_equal(line.get_ydata(), [-1.0, 0.0])
    assert told(ax) == []


def test_nothing_positive_at_all(ax):
    plotting.log10_axis(ax)
    line = plotting.curve(ax, [0, 1], [[0.0, 0.0]], label="a")
    np.testing.assert_array_equal(line.get_ydata(), [plotting.ZERO, plotting.ZERO])


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
    ("x", "y", "says"),
    [
        ([[0, 1], [0, 2]], [[1.0, 1.0], [1.0, 1.0]], "x differs between the repeats at record 1"),
        ([0, 1, 2], [[1.0, 1.0]], "x has shape"),
        ([0, 1], [[np.nan, np.nan]], "no value"),
        ([], np.zeros((2, 0)), "no value"),
    ],
)
def test_curve_refuses(ax, x, y, says):
    with pytest.raises(InputError, match=f"'name'.*{says}"):
        plotting.curve(ax, x, y, label="name")


def test_scatter(ax):
    plotting.log10_axis(ax)
    points = plotting.scatter(ax, [1.0, 2.0, np.nan], [0.5, 0.0, 1.0], label="a", colour="k")
    np.testing.assert_array_equal(points.get_offsets(), [[1.0, 0.5], [2.0, 0.5]])
    assert told(ax) == ["a: values ≤ 0 are drawn here"]
    with pytest.raises(InputError, match="x has shape"):
        plotting.scatter(ax, [1.0], [1.0, 2.0], label="a")
    with pytest.raises(InputError, match="no value"):
        plotting.scatter(ax, [1.0], [np.nan], label="a")


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


def test_a_long_title_is_wrapped_and_its_mark_whole():
    with plotting.style():
        figure = Figure(figsize=(14.5, 3.8))
        axes = figure.subplots(1, 3)
        for ax in axes:
            plotting.title(
                ax, "A title that is far too long for one of three", made_with("rebuilt")
            )
            lines = ax.get_title(loc="left").splitlines()
            assert lines[-1].endswith("[rebuilt data]")
        figure.draw_without_rendering()
        boxes = [ax._left_title.get_window_extent() for ax in axes]
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))


def sides_of_square_with_keys(path):
    """Inches that are left at either side of a figure; below zero, some of it is cut."""
    for ax, _ in plotting.panels(path, [1], size=(6.9, 4.6), log="", keys="outside"):
        ax.plot([0, 1], [1, 0], label="a label that takes a third of the width")
        ax.set(ylabel="a long label of the axis, from bottom to top", aspect="equal")
    box = ax.figure.get_tightbbox()
    return box.x0, ax.figure.get_size_inches()[0] - box.x1


def test_a_figure_is_widened_for_keys_beside_axes_of_a_fixed_aspect(tmp_path, monkeypatch):
    assert min(sides_of_square_with_keys(tmp_path / "whole")) >= -1 / figure_files.DPI
    monkeypatch.setattr(figure_files, "_widened", lambda figure: False)
    assert min(sides_of_square_with_keys(tmp_path / "cut")) < -0.1


def test_a_title_that_passes_the_edge_beside_long_ticks_and_keys_is_wrapped(tmp_path, monkeypatch):
    def drawn():
        looks = {"size": (4.2, 3.0), "log": "", "keys": "outside"}
        for ax, _ in plotting.panels(tmp_path / "figure", ["one"], **looks):
            ax.plot([0, 1], [0, 1], label="a long name of a curve")
            ax.set_yticks([0, 1], ["a long name", "another long name"])
            plotting.title(ax, "CIFAR-10, n = 100, S = 2", made_with("rebuilt"))
        return ax.get_title(loc="left"), ax._left_title.get_window_extent().x1, ax.figure.bbox.x1

    text, right, edge = drawn()
    assert text == "CIFAR-10, n = 100, S = 2\n[rebuilt data]" and right <= edge
    monkeypatch.setattr(figure_files, "_wrap_what_is_cut", lambda figure: False)
    text, right, edge = drawn()
    assert "\n" not in text and right > edge


def test_a_title_does_not_run_into_that_of_the_next_panel(tmp_path):
    looks = {"size": (4.2, 3.0), "log": "", "keys": "outside", "sharey": True}
    axes = []
    for ax, _ in plotting.panels(tmp_path / "figure", ["one", "two"], **looks):
        ax.plot([0, 1], [0, 1], label="a long name of a curve")
        ax.set_yticks([0, 1], ["a long name", "another long name"])
        plotting.title(ax, "CIFAR-10, n = 100, S = 2", made_with("rebuilt"))
        axes.append(ax)
    left, right = (ax._left_title.get_window_extent() for ax in axes)
    assert left.x1 < right.x0
    assert axes[0].get_title(loc="left") == "CIFAR-10, n = 100, S = 2\n[rebuilt data]"


def test_axes(ax):
    plotting.log10_axis(ax)
    plotting.curve(ax, [0, 5e5, 1e6], [[1.0, 1e-5, 1e-12]], label="a")
    plotting.bytes_axis(ax)
    ax.figure.draw_without_rendering()
    assert "400 kB" in [tick.get_text() for tick in ax.get_xticklabels()]
    assert ax.get_yscale() == "log"
    with pytest.raises(InputError, match="no axis 'z'"):
        plotting.log10_axis(ax, "z")


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


@pytest.mark.parametrize(("which", "edge"), [("x", "y1"), ("y", "x1")])
def test_labels_between_powers_stand_in_one_line_with_them(ax, which, edge):
    plotting.log10_axis(ax, which)
    getattr(ax, f"set_{which}lim")(7, 60)
    edges = [getattr(label.get_window_extent(), edge) for label in labels(ax, which).values()]
    assert len(edges) == 3 and np.ptp(edges) < 1


def test_bytes_have_units_on_every_axis_and_do_not_run_into_each_other():
    for ax, _ in plotting.panels(None, [0], size=(3.0, 3.0), log="y"):
        plotting.curve(ax, [5e4, 9.4e5], [2e5, 7e5], label="a")
        plotting.bytes_axis(ax)
        plotting.bytes_axis(ax, "up", "y")
    assert {text.get_text() for text in labels(ax, "y").values()} == {"200 kB", "500 kB"}
    assert ax.get_ylabel() == "up"
    boxes = [label.get_window_extent() for _, label in sorted(labels(ax, "x").items())]
    assert len(boxes) > 1 and all(a.x1 + 4 < b.x0 for a, b in pairwise(boxes))


def test_rounds_begin_at_zero_and_are_whole_numbers(ax):
    ax.plot([0, 1, 10, 2000], [1, 1, 1, 1])
    plotting.rounds_axis(ax)
    texts = [label.get_text() for _, label in sorted(labels(ax, "x").items())]
    assert texts == ["0", "1", "10", "100", "1,000"] and ax.get_xlabel() == "communication round"


def test_bytes_from_zero_keep_the_ticks_of_their_scale():
    for ax, _ in plotting.panels(None, [0], size=(3.5, 3.0)):
        plotting.curve(ax, [0, 160, 480, 11800], [1.0, 0.5, 0.2, 0.1], label="a")
        plotting.from_zero(ax, 160.0)
        plotting.bytes_axis(ax)
    found = [label for _, label in sorted(labels(ax, "x").items())]
    assert [label.get_text() for label in found] == ["0 B", "100 B", "1 kB", "10 kB"]
    boxes = [label.get_window_extent() for label in found]
    assert all(a.x1 < b.x0 for a, b in pairwise(boxes))


@pytest.mark.parametrize("end", ["left", "right"])
def test_the_name_of_a_line_stands_at_either_end_and_inside(ax, end):
    plotting.curve(ax, [0, 1], [1.0, 3.0], label="a")
    plotting.reference_line(ax, 2.0, "a name", end=end)
    ax.figure.draw_without_rendering()
    name, whole = ax.texts[0].get_window_extent(), ax.get_window_extent()
    assert whole.x0 < name.x0 and name.x1 < whole.x1
    assert (name.x0 - whole.x0 < whole.x1 - name.x1) == (end == "left")


def test_curves_of_one_point_and_one_colour_have_marks_of_their_own(ax):
    """A method's variants differ by their line style alone, of which a point shows nothing."""
    styles = {*curve_styles.LINES.values(), *curve_styles.DASHES.values(), (0, (3, 1, 1, 1))}
    lines = [
        plotting.curve(ax, [1], [[2.0]], label=f"{style}", colour="blue", linestyle=style)
        for style in styles
    ]
    assert len({line.get_marker() for line in lines}) == len(styles) == 8
    assert plotting.curve(ax, [1, 2], [[2.0, 3.0]], label="two").get_marker() == ""


def test_a_legend_over_curves_is_legible(ax):
    plotting.curve(ax, [0, 1], [5.0, 1.0], label="a")
    plotting.legend(ax, outside=False)
    frame = ax.get_legend().get_frame()
    assert ax.get_legend().get_frame_on() and 0.5 < frame.get_alpha() < 1
    assert frame.get_facecolor()[:3] == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(("count", "shape"), [(2, (1, 2)), (3, (1, 3)), (4, (2, 2)), (5, (2, 3))])
def test_rows_of_panels_are_as_equal_as_they_can_be(count, shape):
    for ax, _ in plotting.panels(None, range(count), columns=3):
        grid = ax.get_subplotspec().get_gridspec()
        assert (grid.nrows, grid.ncols) == shape


def test_a_legend_names_curves_of_one_label_once(ax):
    for height in (1.0, 2.0):
        ax.plot([0, 1], [height, height], label="same")
    plotting.legend(ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["same"]


def test_reference_line(ax):
    plotting.reference_line(ax, 2.0, "centralised")
    assert told(ax) == ["centralised"]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [2.0, 2.0])


def test_the_name_of_a_floor_stands_under_it_and_inside():
    for ax, _ in plotting.panels(None, [0], size=(5, 2.5)):
        plotting.curve(ax, [0, 1, 2], [5.0, 2.0, 1.0], label="a")
        plotting.reference_line(ax, 1.0, "floor", below=True)
    ax.figure.draw_without_rendering()
    (name,) = ax.texts
    box, inside = name.get_window_extent(), ax.get_window_extent()
    assert box.y1 < ax.transData.transform((0, 1.0))[1] and box.y0 > inside.y0


def ticks(ax):
    ax.figure.draw_without_rendering()
    return ax.get_xticks()


@pytest.mark.parametrize("drawn", ["curve", "scatter"])
def test_whole_numbers_have_whole_ticks(drawn):
    def shown(x):
        for ax, _ in plotting.panels(None, [0]):
            getattr(plotting, drawn)(ax, np.array(x), np.ones(len(x)), label="a")
            plotting.reference_line(ax, 0.5, "across")  # its ends are no data
        return ticks(ax)

    assert (shown([0, 1, 2, 3]) % 1 == 0).all()
    assert (shown([0, 0.5, 1.5, 3]) % 1 != 0).any()


def test_ticks_that_are_set_stay():
    for ax, _ in plotting.panels(None, [0]):
        plotting.curve(ax, [0, 1, 2], [1.0, 1.0, 1.0], label="a")
        ax.set_xticks([0.25, 1.5])
    assert list(ticks(ax)) == [0.25, 1.5]


def test_an_empty_panel_says_so():
    axes = [ax for ax, item in plotting.panels(None, [0, 1]) if item == 0 or draw_one(ax)]
    empty, full = axes[0].figure.axes
    assert told(empty) == ["Nothing of this panel was run."] and told(full) == []


def draw_one(ax):
    return plotting.curve(ax, [0, 1], [1.0, 2.0], label="a")


def test_legend_reads_like_the_picture(ax):
    plotting.curve(ax, [0, 1], [5.0, 1.0], label="low")
    plotting.scatter(ax, [0.5], [3.0], label="points")
    plotting.curve(ax, [0, 1], [4.0, 2.0], label="high")
    for outside in (True, False):
        plotting.legend(ax, outside=outside)
        labels = [text.get_text() for text in ax.get_legend().get_texts()]
        assert labels == ["high", "low", "points"]


def test_looks_are_stable_and_distinct():
    assert plotting.look("faps") == {"colour": "#009E73", "linestyle": "--"}
    assert plotting.look("somebody_elses") == plotting.look("somebody_elses")
    saying = [name for name in algorithms.names() if curve_styles.told(name)]
    assert len(saying) > 20
    found = [tuple(plotting.look(name).values()) for name in saying]
    assert all(one != other for one, other in combinations(found, 2))


def test_methods_of_one_name_have_one_colour_in_both_papers_that_have_them():
    for networks, linear in (("fedrep", "fedrep_linear"), ("local_only", "local_linear")):
        assert plotting.look(networks)["colour"] == plotting.look(linear)["colour"]


def test_all_networks_are_told_apart_as_on_the_interactive_pages():
    found = plotting.algorithm_looks(fedrep.METHODS)
    assert list(found) == list(fedrep.METHODS) and len(found) == 12
    assert all(one != other for one, other in combinations(found.values(), 2))
    for name, look in zip(found, curve_styles.told_apart(list(fedrep.METHODS)), strict=True):
        assert found[name] == {
            "colour": look["colour"],
            "linestyle": curve_styles.DASHES[look["dash"]],
        }
        assert look["colour"] == plotting.look(name)["colour"] and curve_styles.told(name)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("blu, solid", "':look: blu, solid' of its docstring: unknown colour 'blu': did you mean"),
        ("blue, dahsed", "unknown line 'dahsed': did you mean 'dashed'"),
        ("blue", "unknown line ''"),
    ],
)
def test_a_look_comes_from_the_docstring_of_the_module(monkeypatch, text, says):
    module = algorithms.get("one_shot").module
    monkeypatch.setattr(module, "__doc__", "A title.\n\n:look: black, dotted\n")
    curve_styles.told.cache_clear()
    assert curve_styles.look("one_shot") == {"colour": "#000000", "linestyle": ":"}
    assert curve_styles.words(["one_shot", "gone"]) == ["gone None", "one_shot black, dotted"]
    monkeypatch.setattr(module, "__doc__", f"A title.\n\n:look: {text}\n")
    curve_styles.told.cache_clear()
    with pytest.raises(InputError, match=says):
        curve_styles.look("one_shot")
    monkeypatch.setattr(module, "__doc__", None)
    curve_styles.told.cache_clear()
    assert curve_styles.told("one_shot") is None
    assert curve_styles.look("one_shot")["colour"] in plotting.CYCLE
    curve_styles.told.cache_clear()


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [("each", 3), ("first", 1), ("last", 1), ("outside", 1), ("none", 0)],
)
def test_panels_yield_axes_in_order_and_save_the_figure(tmp_path, keys, wanted):
    seen = []
    for ax, item in plotting.panels(
        tmp_path / "p", "abc", columns=2, log="xy", keys=keys, sharey=True
    ):
        seen.append((ax, item))
        plotting.curve(ax, [1, 2], [3.0, 4.0], label=item)
        ax.set_ylabel("loss")
    axes, items = zip(*seen, strict=True)
    assert items == ("a", "b", "c")
    assert all(ax.get_xscale() == ax.get_yscale() == "log" for ax in axes)
    assert sum(ax.get_legend() is not None for ax in axes) == wanted
    assert [ax.get_ylabel() for ax in axes] == ["loss", "", "loss"]
    grid = axes[0].figure.axes
    assert len(grid) == 4 and not grid[3].axison
    assert sorted(file.name for file in tmp_path.glob("p.*")) == ["p.pdf", "p.png"]


def test_an_unknown_legend_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"'lsat': did you mean 'last'\?"):
        next(plotting.panels(tmp_path / "p", "a", keys="lsat"))


def test_a_figure_of_which_nothing_was_run_says_so(tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr(figure_files, "save", lambda figure, path: saved.append((figure, path)))
    assert list(plotting.panels(tmp_path / "p", [])) == []
    ((figure, path),) = saved
    assert path == tmp_path / "p" and not figure.axes
    assert [text.get_text() for text in figure.texts] == ["Nothing of this figure was run."]
    figure.draw_without_rendering()
    assert figure.get_figheight() < 1 and figure.texts[0].get_window_extent().x0 > 0


def test_a_legend_beside_the_panels_names_the_curves_of_all(tmp_path):
    for ax, names in plotting.panels(tmp_path / "p", ["ab", "bc"], keys="outside"):
        for height, name in enumerate(names):
            plotting.curve(ax, [0, 1], [1.0, 2.0 + height], label=name)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["c", "b", "a"]


def test_a_place_for_none_stays_empty(tmp_path):
    items = ["a", None, "b", None]
    shown = []
    for ax, item in plotting.panels(tmp_path / "p", items, columns=2, keys="last"):
        plotting.curve(ax, [1, 2], [3.0, 4.0], label=item)
        shown.append((ax, item))
    (a, _), (b, _) = shown
    assert [item for _, item in shown] == ["a", "b"]
    assert [ax.axison for ax in a.figure.axes] == [True, False, True, False]
    assert a.get_legend() is None and b.get_legend() is not None

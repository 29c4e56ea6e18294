"""`fedcore pca` on files of one's own, against the pooled table."""

from __future__ import annotations

import itertools
import json
import shlex
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from matplotlib import image

import commands
from fedcore.cli.pca import pca
from fedcore.errors import Advice, ConvergenceWarning, InputError
from fedcore.estimators import FederatedPCA

NAMES = ["age", "dose", "iron", "salt"]
LOW, HIGH = np.array([0.0, -50, 0, -20]), np.array([120.0, 60, 8, 40])


call, refused = partial(commands.call, "pca"), partial(commands.refused_command, "pca")


def found(*words):
    return json.loads(commands.ran("pca", *words, "--json").stdout)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Three files of 8000 rows in all, the columns of the second in another order."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    axes = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    middle, half = (LOW + HIGH) / 2, (HIGH - LOW) / 2
    S = middle + half * (rng.standard_normal((8000, 4)) * [0.5, 0.35, 0.08, 0.08] @ axes)
    orders = [0, 1, 2, 3], [2, 0, 3, 1], [0, 1, 2, 3]
    for name, part, order in zip("xyz", np.split(S, [4000, 6500]), orders, strict=True):
        head = ",".join(NAMES[i] for i in order)
        np.savetxt(f"{name}.csv", part[:, order], delimiter=",", header=head, comments="")
    lines = zip(NAMES, LOW, HIGH, strict=True)
    Path("ranges.csv").write_text(
        "column,low,high\n" + "".join(f"{n},{low:g},{high:g}\n" for n, low, high in lines)
    )
    return S


ALL = ["x.csv", "y.csv", "z.csv"]


def pooled(S, scale):
    """Components of the samples less their mean, over `scale`, by NumPy."""
    right_t = np.linalg.svd((S - S.mean(axis=0)) / scale, full_matrices=False)[2]
    return right_t * np.sign(right_t[np.arange(4), np.abs(right_t).argmax(axis=1)])[:, None]


@pytest.mark.parametrize("how", ["raw", "scale", "bounds", "bounds and scale"])
def test_it_is_the_pca_of_the_pooled_table(files, how):
    S = files
    scale = {"raw": np.ones(4), "bounds": (HIGH - LOW) / 2}.get(how, S.std(axis=0))
    options = [*(["--scale"] if "scale" in how else [])]
    options += ["--bounds", "ranges.csv"] if "bounds" in how else []
    got = found(*ALL, "-r", 2, *options)
    np.testing.assert_allclose(got["components"], pooled(S, scale)[:2], atol=1e-7)
    np.testing.assert_allclose(got["mean"], S.mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(got["scale"], scale, rtol=1e-10)
    variances = np.linalg.eigvalsh(np.cov(S.T / scale[:, None]))[::-1]
    np.testing.assert_allclose(got["explained_variance"], variances[:2])
    assert got["clients"] == {"x.csv": 4000, "y.csv": 2500, "z.csv": 1500}
    text = call(*ALL, *options).stdout
    for name, weights in zip(NAMES, pooled(S, scale)[:2].T, strict=True):
        assert [f"{w:.3f}" for w in weights] in [line.split()[1:] for line in text.splitlines()]
        assert name in text


def test_a_share_takes_as_many_components_as_it_needs(files):
    ratios = np.linalg.svd((files - files.mean(axis=0)) / files.std(axis=0))[1] ** 2
    needed = int(np.searchsorted(np.cumsum(ratios) / ratios.sum(), 0.9)) + 1
    assert len(found(*ALL, "--scale", "--components", "0.9")["components"]) == needed
    for wrong in ("0", "1.5", "-1", "nan"):
        refused(*ALL, "--components", wrong)


@pytest.mark.parametrize("scale", [(), ("--scale",)])
def test_with_epsilon_it_is_near_the_same_answer_and_says_how_near(files, scale):
    S = np.clip(files, LOW, HIGH)
    got = found(*ALL, "--bounds", "ranges.csv", "--epsilon", 3, *scale)
    exact = pooled(S, np.array(got["scale"]))[:2]
    C = np.array(got["components"])
    assert np.linalg.norm(C - C @ exact.T @ exact, 2) <= got["error_estimate"] < 0.5
    assert got["ledger"]["epsilon"] == pytest.approx(3, rel=1e-5)
    assert got["not_released"] == ["clients", "outside_bounds"] and got["ledger"]["delta"] == 1e-6
    over = ((files < LOW) | (files > HIGH)).sum(axis=0)
    assert got["outside_bounds"] == {n: k for n, k in zip(NAMES, over, strict=True) if k}
    with pytest.warns(ConvergenceWarning):
        noise = found("x.csv", "--bounds", "ranges.csv", "--epsilon", 0.01, *scale)
    assert noise["error_estimate"] == 1


def test_one_client_for_each_value_of_a_column(files):
    rows = Path("x.csv").read_text().splitlines()
    Path("w.csv").write_text(
        "".join(f"{row},{('ward', 'b', 'a')[i and 1 + i % 2]}\n" for i, row in enumerate(rows))
    )
    assert found("w.csv", "--by", "ward")["clients"] == {"a": 2000, "b": 2000}


def test_the_figure_has_all_points_and_replaces_no_input(files):
    assert call(*ALL, "--bounds", "ranges.csv", "--plot", "made.png").exit_code == 0
    assert image.imread("made.png").std() > 0.05 and Path("made.pdf").is_file()
    Path("x.csv").rename("x.png")  # whatever it holds
    Path("x.pdf").write_text("somebody's")
    for words in (["x.png", "--plot", "x"], ["y.csv", "--plot", "x"]):
        refused(*words)
    assert Path("x.pdf").read_text() == "somebody's"
    refused("y.csv", "--plot", "nowhere/made")
    assert call("y.csv", "--plot", "made.svg").exit_code == 2  # and no made.svg.png
    refused("y.csv", "--plot", "made", "--components", 1)


@pytest.mark.parametrize(
    "text",
    [
        "column,low,high\nage,0,120\n",  # columns lack
        "column,low,high\nage,120,0\ndose,-50,60\niron,0,8\nsalt,-20,40\n",
        "column,low,high\nage,1,1\ndose,-50,60\niron,0,8\nsalt,-20,40\n",
        "column,low,high\nage,0,\ndose,-50,60\niron,0,8\nsalt,-20,40\n",
        "column,low,high\nage,0,9\nage,0,120\ndose,-50,60\niron,0,8\nsalt,-20,40\n",
        "column,low,high\nage,young,old\ndose,-50,60\niron,0,8\nsalt,-20,40\n",
        "name,from,to\nage,0,120\n",
        "",
    ],
)
def test_ranges_that_do_not_fit_are_refused_before_anything_is_sent(files, text):
    Path("wrong.csv").write_text(text)
    for more in ([], ["--epsilon", 1]):
        assert "wrong.csv" in refused(*ALL, "--bounds", "wrong.csv", *more)


def test_options_that_need_others_are_refused(files):
    refused(*ALL, "--epsilon", 1)
    refused(*ALL, "--delta", 1e-5)
    refused(*ALL, "--bounds", "ranges.csv", "--epsilon", 0)
    refused(*ALL, "--bounds", "ranges.csv", "--epsilon", 1, "--components", 0.9)
    refused(".")
    refused("none.csv")
    refused("x.csv", "./x.csv")


@pytest.mark.parametrize("share", ["0.9", "0.01", None])
def test_the_advice_leads_from_a_share_with_epsilon_to_a_run(files, share):
    Path("new").mkdir()
    np.savetxt("new/a.csv", files[:, :3], delimiter=",", header="age,dose,iron", comments="")
    words, taken = ["new/a.csv", "--epsilon", "1"], []
    words += [] if share is None else ["--components", share]
    Path("ranges.csv").unlink()
    while (done := call(*words)).exit_code:
        with pytest.raises(InputError) as told:
            pca.main(words, standalone_mode=False)
        way = told.value.advice[0]
        assert way not in taken and way.format(command=True) in done.stderr
        if "bounds" in way.options:
            lines = "column,low,high", "age,0,120", "dose,0,120", "iron,0,120"
            Path("ranges.csv").write_text("\n".join(lines))
        words += shlex.split(Advice("", way.options).format(command=True))
        taken.append(way)
    assert len(taken) == 1 + (share is not None)  # a number, and ranges of all columns


@pytest.mark.parametrize("share", [0.5, np.float64(0.9), None])
def test_the_advice_on_a_share_of_a_private_fit_is_a_number(files, share):
    bounds = np.array([LOW, HIGH])
    model = FederatedPCA(share, epsilon=1.0, delta=1e-6, bounds=(*bounds,))
    with pytest.raises(InputError) as told:
        model.fit([files])
    (way,) = told.value.advice
    assert model.set_params(**way.options).fit([files]).n_components_ == 2


def test_without_a_line_its_column_can_be_left_out(files):
    """With any separator, and whether or not the last line ends."""
    for sign, end in itertools.product(",;\t", ("", "\n")):
        lines = ["column,low,high", "age,0,120", "dose,-50,60", "iron,0,8"]
        Path("ranges.csv").write_text("\n".join(lines).replace(",", sign) + end)
        with pytest.raises(InputError) as told:
            pca.main([*ALL, "--bounds", "ranges.csv"], standalone_mode=False)
        _, leave = told.value.advice
        assert dict(leave.options) == {"without": ["salt"]}
        got = found(*ALL, "--bounds", "ranges.csv", "--without", "salt")
        assert got["features"] == NAMES[:3] and got["scale"][0] == pytest.approx(60)
    Path("ranges.csv").write_text("column;low;high\nAGE;0;120,5\ndose;-50;60\n iron ;0;8\n")
    got = found(*ALL, "--bounds", "ranges.csv", "--without", "salt")
    assert got["features"] == NAMES[:3] and got["scale"][0] == pytest.approx(60.25)


@pytest.mark.parametrize("kind", ["npy", "svm"])
def test_columns_without_names_keep_the_numbers_of_their_file(files, kind):
    first = int(kind == "svm")
    np.save("a.npy", files)
    rows = [" ".join(f"{i}:{x!r}" for i, x in enumerate(row, 1)) for row in files.tolist()]
    Path("a.svm").write_text("".join(f"0 {row}\n" for row in rows))
    lines = zip(itertools.count(first), LOW, HIGH)
    Path("ranges.csv").write_text(
        "column,low,high\n" + "".join(f"{n},{low:g},{high:g}\n" for n, low, high in lines)
    )
    assert found(f"a.{kind}")["features"] == [str(first + i) for i in range(4)]
    got = found(f"a.{kind}", "--bounds", "ranges.csv", "--without", first + 1)
    assert got["features"] == [str(first + i) for i in (0, 2, 3)]
    np.testing.assert_allclose(got["scale"], ((HIGH - LOW) / 2)[[0, 2, 3]])


def test_a_line_break_in_a_name_breaks_no_line(files):
    Path("a\nb.csv").write_text(Path("x.csv").read_text().replace("age", '"age\nin years"'))
    for words in (["pca", "a\nb.csv"], ["run", "one_shot", "a\nb.csv", "-r", 1]):
        told = commands.call(*words).stdout
        assert r"a\nb.csv" in told.splitlines()[0] and told.count(r"age\nin years") >= 1
        assert not any(line.startswith(("in years", "b.csv")) for line in told.splitlines())


@pytest.mark.parametrize("cell", ["1.500", "1,500"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_ranges_have_the_decimal_point_of_the_data_or_it_is_asked(
    files, recwarn, cell, decimal
):  # fmt: skip
    lines = "column;low;high", f"age;0;{cell}", "dose;-50;60", "iron;0;8", "salt;-20;40"
    Path("ranges.csv").write_text("\n".join(lines))
    words = [*ALL, "--bounds", "ranges.csv"]
    with pytest.raises(InputError) as told:
        pca.main(words, standalone_mode=False)
    assert {way.options["decimal"] for way in told.value.advice} == {".", ","}
    high = 1.5 if decimal in cell else 1500
    assert found(*words, "--decimal", decimal)["scale"][0] == pytest.approx(high / 2)
    outside = int(((files[:, 0] < 0) | (files[:, 0] > 1.5)).sum())
    told = [str(one.message) for one in recwarn if "'age'" in str(one.message)]
    assert [f"{outside:,} of 8,000 " in one for one in told] == [True] * (high < 2)

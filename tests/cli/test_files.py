"""`fedcore run`, `compare` and `plot` on files of one's own."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import scipy.sparse

from commands import call, ran, refused_command
from fedcore.errors import InputError, TableError
from fedcore.experiments import from_files
from fedcore.history import History
from fedcore.sparse import SparseRows
from fedcore.user_tables import own_files
from refused import refused

NAMES = ["age", "dose", "iron"]


def csv(path, x, names=NAMES, extra=None, separator=","):
    lines = [separator.join([*names, *(["ward"] if extra else [])])]
    for i, row in enumerate(x):
        cells = [f"{value!r}" for value in row.tolist()] + ([extra[i]] if extra else [])
        lines.append(separator.join(cells))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def tables():
    rng = np.random.default_rng(1)
    return [rng.standard_normal((n, 3)) * [9, 3, 1] + [50, 7, 3] for n in (20, 12, 8)]


@pytest.fixture
def files(tables, tmp_path):
    return [csv(tmp_path / f"{i}.csv", x) for i, x in enumerate(tables)]


@pytest.mark.parametrize("center", [True, False])
def test_a_run_on_files_is_that_of_the_library_and_reaches_the_pooled_answer(
    files, tables, center, tmp_path
):
    out = tmp_path / "h.h5"
    flags = ["--center"] if center else []
    done = ran("run", "block_krylov", *files, "-r", 2, "--out", out, *flags)
    S = np.vstack(tables)
    S = S - S.mean(axis=0) if center else S
    history = History.load(out)
    sigma, right_t = np.linalg.svd(S)[1:]
    np.testing.assert_allclose(history.reference["singular_values"], sigma, rtol=1e-12)
    basis = history.final["basis" if "basis" in history.final else "V"][0]
    np.testing.assert_allclose(
        basis @ np.linalg.pinv(basis), right_t[:2].T @ right_t[:2], atol=1e-7
    )
    assert (
        history.about["problem"]["n_clients"] == 3 and history.about["problem"]["status"] == "own"
    )
    assert ("less their mean" in done.output) == center
    # The round of the mean: d + 1 numbers up and d down, at each client.
    plain = History.load(out).last("scalars_down")[0]
    assert plain % 3 == 0 and ((plain - 3 * 3) % (3 * 3 * 2) == 0) == center


def test_the_same_rows_in_any_format_give_the_same_bytes(files, tables, tmp_path):
    outs = []
    frames = [csv(tmp_path / f"{i}.tsv", x, separator="\t") for i, x in enumerate(tables)]
    packed = [tmp_path / f"{i}.npz" for i in range(3)]
    for path, x in zip(packed, tables, strict=True):
        np.savez(path, x=x, columns=NAMES)
    bare = [tmp_path / f"{i}.npy" for i in range(3)]
    for path, x in zip(bare, tables, strict=True):
        np.save(path, x)
    for kind in (files, frames, packed, bare):
        out = tmp_path / "h.h5"
        assert call("run", "ssi", *kind, "-r", 1, "--out", out).exit_code == 0
        history = History.load(out)
        outs.append((history.final["basis"].tobytes(), history.about["problem"]["sha256"]))
    assert len(set(outs)) == 1


@pytest.mark.parametrize(
    ("ending", "module"), [("csv", "pyarrow.csv"), ("parquet", "pyarrow.parquet")]
)
def test_what_reads_a_table_is_said_where_it_is_not_installed(
    monkeypatch, tmp_path, ending, module
):
    path = tmp_path / f"a.{ending}"
    path.write_text("a,b\n1,2\n")
    monkeypatch.setitem(sys.modules, module, None)
    error = refused(lambda: own_files.read(path), InputError)
    assert error.advice[0].call.startswith("pip install pyarrow")


def test_a_column_says_whose_the_rows_are(tables, tmp_path):
    wards = [["b", "a"] * 10, ["a"] * 12, ["c"] * 8]
    paths = [
        csv(tmp_path / f"{i}.csv", x, extra=w)
        for i, (x, w) in enumerate(zip(tables, wards, strict=True))
    ]
    problem = from_files.make([str(p) for p in paths], by="ward").problem
    pooled, whose = np.vstack(tables), np.concatenate(wards)
    assert len(problem.clients) == 3
    for client, ward in zip(problem.clients, "abc", strict=True):
        np.testing.assert_array_equal(client, pooled[whose == ward])
    listed = json.loads(call("run", "ssi", *paths, "-r", 1, "--by", "ward", "--json").stdout)
    assert listed["problem"]["n_clients"] == 3
    assert listed["metrics"]["objective"]["at best"]["median"] == pytest.approx(
        0.5 * np.sum(np.linalg.svd(pooled)[1][1:] ** 2)
    )


def test_clients_that_lose_all_rows_or_look_the_same_are_told(tables, tmp_path):
    x = tables[0].copy()
    x[:2, 1] = np.nan
    path = csv(tmp_path / "a.csv", x, extra=["lost"] * 2 + ["x"] * 9 + ["X"] * 8 + ["01"])
    made = from_files.make([str(path)], by="ward", missing="drop")
    told = " ".join(guess.what for guess in made.guesses)
    assert made.clients == ["01", "X", "x"] and "'lost'" in told and "'X', 'x'" in told
    assert "'01'" not in told  # which is no number here


def test_labels_of_numbers_and_of_classes(tables, tmp_path):
    numbers = from_files.make([str(csv(tmp_path / "a.csv", tables[0]))], labels="iron").problem
    np.testing.assert_array_equal(numbers.clients.labels[0], tables[0][:, 2])
    np.testing.assert_array_equal(numbers.clients[0], tables[0][:, :2])
    wards = [["b", "a"] * 10, ["a", "c"] * 6]
    paths = [
        str(csv(tmp_path / f"{i}.csv", x, extra=w))
        for i, (x, w) in enumerate(zip(tables, wards, strict=False))
    ]
    classes = from_files.make(
        paths, labels="ward", classes=True, held_out=0.25, single=True
    ).problem
    known = np.concatenate([*classes.clients.labels, *classes.held_out.labels])
    assert sorted(np.bincount(known.astype(int))) == [6, 10, 16]
    assert [len(c) for c in classes.clients] == [15, 9] and classes.clients[0].dtype == np.float32
    rows = {
        row.tobytes() for part in (classes.clients, classes.held_out) for x in part for row in x
    }
    assert len(rows) == 32  # every sample is on one side
    refused(lambda: from_files.make(paths, labels="ward"), InputError, "'ward'")
    ran("run", "fedrep_linear", *paths, "-r", 1, "--labels", "iron", "--without", "ward",
                "--set", "rounds=2", "--metric", "training_loss")  # fmt: skip


TEXTS = [  # of a.csv, and what the line names besides the file; more: test_own_files
    ("age,dose,iron\n1,2,3\n4,,6\n", "line 3"),
    ("age,dose,iron\n1,2,3\n4,5\n", "line 3"),
    ("age,dose\n1,inf\n", "--without dose"),
    ("age,dose,dose\n1,2,3\n", "'dose'"),
    (",age,dose\n0.5,1,5\n1,3,5\n", "name"),
    ("", "no numbers"),
    ("age;dose\n1,500;2\n", "--decimal ,"),
    ("age,blood type\n1,N/A\n", "--without 'blood type'"),
]


@pytest.mark.parametrize(("text", "name"), TEXTS)
def test_a_wrong_cell_is_named(text, name, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(text, encoding="utf-8")
    line = refused_command("run", "ssi", path, "-r", 1)
    assert str(path) in line and name in line


def test_rows_that_do_not_say_whose_they_are_are_no_client_of_their_own(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("age,dose,ward\n1,2,north\n3,5, \n4,1,south\n")
    told = refused(lambda: from_files.make([str(path)], by="ward"), TableError)
    assert (told.file, told.column, told.row) == (str(path), "ward", 1)
    left = from_files.make([str(path)], by="ward", **told.advice[0].options)
    assert left.clients == ["north", "south"]


def packed(**arrays):
    return lambda path: np.savez(path, **arrays)


def saved(sparse):
    return lambda path: scipy.sparse.save_npz(path, sparse)


HOLE = scipy.sparse.csr_array(np.diag([1.0, np.nan, 2.0]))
FILES = {  # a name, what writes it, options, and what the line names besides it
    "latin.csv": (lambda path: path.write_bytes("größe,b\n1,2\n".encode("latin-1")), (), "UTF-8"),
    "two.npz": (packed(a=np.eye(3), b=np.eye(3)), (), "one matrix"),
    "pickle.npz": (lambda path: path.write_bytes(b"hello"), (), "cannot be read"),
    "zip.npz": (lambda path: path.write_bytes(b"PK nonsense"), (), "cannot be read"),
    "empty.npz": (lambda path: path.write_bytes(b""), (), "cannot be read"),
    "o.npy": (lambda path: np.save(path, np.array([[None]])), (), "object"),
    "a.docx": (lambda path: path.write_text("x"), (), ".csv"),
    "nan.npz": (packed(x=np.eye(3), ward=[1.0, np.nan, 2.0]), ("--by", "ward"), "'ward'"),
    "none.npz": (packed(x=np.eye(3), ward=["a", "b", ""]), ("--by", "ward"), "'ward'"),
    "hole.npz": (saved(HOLE), (), "NaN at row"),
    "bad.svm": (lambda path: path.write_text("1 2:3 2:4\n"), (), "line 1"),
    "none.svm": (lambda path: path.write_text("1\n-1\n"), (), "no numbers"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_something_else_is_named(name, tmp_path):
    write, options, said = FILES[name]
    write(tmp_path / name)
    line = refused_command("run", "ssi", tmp_path / name, "-r", 1, *options)
    assert str(tmp_path / name) in line and said in line
    assert "allow_pickle=False" not in line  # NumPy's own words


def libsvm(path, x, labels):
    rows = [" ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row.tolist()) if v) for row in x]
    path.write_text("".join(f"{y} {row}\n" for y, row in zip(labels, rows, strict=True)))
    return path


@pytest.fixture
def sparse_tables():
    rng = np.random.default_rng(2)
    found = [rng.standard_normal((n, 6)) * (rng.random((n, 6)) < 0.5) for n in (20, 12)]
    found[1][:, 4:] = 0  # the second LIBSVM file is narrower than the first
    return found


def sparse_files(folder, tables, kind):
    if kind == "npz":
        for i, x in enumerate(tables):
            scipy.sparse.save_npz(folder / f"{i}.npz", scipy.sparse.csr_array(x))
        return [folder / f"{i}.npz" for i in range(len(tables))]
    return [libsvm(folder / f"{i}.{kind}", x, [i % 2] * len(x)) for i, x in enumerate(tables)]


@pytest.mark.parametrize("kind", ["svm", "libsvm", "npz"])
@pytest.mark.parametrize("center", [True, False])
def test_sparse_files_stay_sparse(sparse_tables, kind, center, tmp_path, monkeypatch):
    monkeypatch.setattr(SparseRows, "toarray", None)
    files, out = sparse_files(tmp_path, sparse_tables, kind), tmp_path / "h.h5"
    ran("run", "block_krylov", *files, "-r", 2, "--out", out, *["--center"] * center)
    S = np.vstack(sparse_tables)
    sigma = np.linalg.svd(S - S.mean(axis=0) if center else S)[1]
    # Rounding; the run ends at a sine of 1e-8, to which the objective is quadratic.
    found = History.load(out).columns["objective"][0, -1]
    assert found == pytest.approx(0.5 * np.sum(sigma[2:] ** 2), rel=1e-12)


def test_the_labels_of_libsvm_files_say_whose_a_row_is(sparse_tables, tmp_path):
    both = libsvm(tmp_path / "all.svm", np.vstack(sparse_tables), [7] * 20 + [-1] * 12)
    problem = from_files.make([str(both)], by="label", without=["2"]).problem
    assert problem.clients.sparse and problem.clients.shapes == [(12, 5), (20, 5)]
    kept = [0, 2, 3, 4, 5]
    for client, x in zip(problem.clients, reversed(sparse_tables), strict=True):
        np.testing.assert_array_equal(client.toarray(), x[:, kept])


def test_compare_prints_a_table_with_the_best_values_and_draws(files, tables, tmp_path):
    command = ["compare", "ssi", "one_shot", "block_krylov", *files, "-r", 1, "--center"]
    done = ran(*command, "--plot", tmp_path / "p", "--out", tmp_path / "h", "--repeats", 2)
    rows = {line.split()[0]: line.split() for line in done.stdout.splitlines() if line.strip()}
    assert set(rows) >= {"method", "ssi", "one_shot", "block_krylov", "at"}
    S = np.vstack(tables)
    floor = 0.5 * np.sum(np.linalg.svd(S - S.mean(axis=0))[1][1:] ** 2)
    assert float(rows["at"][2]) == pytest.approx(floor, rel=1e-3)
    assert float(rows["ssi"][1]) == pytest.approx(floor, rel=1e-3)
    assert rows["ssi"][-1] == "converged" and rows["one_shot"][3] == "2"  # the mean, one upload
    for name in ("ssi", "one_shot", "block_krylov"):
        assert History.load(tmp_path / "h" / f"{name}.h5").repeats == 2
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    found = json.loads(call(*command, "--json").stdout)
    assert list(found) == ["ssi", "one_shot", "block_krylov"]
    assert found["ssi"]["ledger"]["round"] == float(rows["ssi"][3])
    assert found["ssi"]["problem"] == found["one_shot"]["problem"]


@pytest.mark.parametrize("center", [True, False])
def test_features_are_scaled_as_by_hand_and_the_exchange_is_told(files, tables, tmp_path, center):
    flags, out = ["--scale", *["--center"] * center], tmp_path / "h"
    ran("compare", "ssi", "one_shot", *files, "-r", 1, *flags, "--out", out)
    S = np.vstack(tables)
    d = S.shape[1]
    by_hand = (S - S.mean(axis=0)) / S.std(axis=0) if center else S / np.sqrt((S**2).mean(axis=0))
    floor = 0.5 * np.sum(np.linalg.svd(by_hand)[1][1:] ** 2)
    for name in ("ssi", "one_shot"):
        history = History.load(out / f"{name}.h5")
        # A sum of squares and a scale for each feature, in double precision, of each client.
        assert f"{8 * d * len(files)} bytes up" in history.about["problem"]["note"]
        divisors = S.std(axis=0) if center else np.sqrt((S**2).mean(axis=0))
        np.testing.assert_allclose(history.final["scale"], [divisors], rtol=1e-12)
    assert history.last("round")[0] == 1 + center  # of one_shot
    found = History.load(out / "ssi.h5").last("objective")[0]
    assert found == pytest.approx(floor, rel=1e-12)  # quadratic in a sine of 1e-8


def test_compare_gives_parameters_to_all_that_have_them_or_to_one(files):
    command = ["compare", "ssi", "local_power", *files, "-r", 1, "--json"]
    found = json.loads(call(*command, "--set", "rounds=3", "--set", "ssi.rounds=2").stdout)
    assert {name: f["params"]["rounds"] for name, f in found.items()} == {
        "ssi": 2,
        "local_power": 3,
    }
    tol = json.loads(call(*command, "--set", "tol=0.1", "--set", "rounds=2").stdout)
    assert "tol" not in tol["local_power"]["params"] and tol["ssi"]["params"]["tol"] == 0.1


def test_regressions_are_measured_by_their_fit(files, tables):
    found = json.loads(
        call("compare", "fedrep_linear", "local_linear", *files, "-r", 1, "--labels", "iron",
             "--json").stdout
    )  # fmt: skip
    assert {name: list(one["metrics"]) for name, one in found.items()} == {
        "fedrep_linear": ["training_loss"], "local_linear": ["training_loss"],
    }  # fmt: skip
    # Local Only is every client's least squares, (8) is half the mean over clients of mean squares.
    squares = []
    for x in tables:
        solved = np.linalg.lstsq(x[:, :2], x[:, 2], rcond=None)[0]
        squares.append(np.mean((x[:, 2] - x[:, :2] @ solved) ** 2))
    best = found["local_linear"]["metrics"]["training_loss"]["median"]
    assert best == pytest.approx(np.mean(squares) / 2, rel=1e-9)


def test_equal_singular_values_are_told_with_a_run_that_converged(tmp_path):
    path = csv(tmp_path / "eye.csv", np.eye(3))
    says = "components are arbitrary (1 of 1): singular values 1 and 2"
    for r, told in ((1, True), (3, False)):
        out = tmp_path / f"{r}.h5"
        done = call("run", "block_krylov", path, "-r", r, "--out", out)
        assert "converged (1 of 1 within the tolerance)" in done.stdout
        assert (says in done.stdout) is told, done.stdout
        assert (says in call("show", out).stdout) is told


def test_plot_draws_histories(files, tmp_path):
    paths = []
    for rounds in (2, 3):
        paths.append(tmp_path / f"r{rounds}.h5")
        call("run", "ssi", *files, "-r", 1, "--set", f"rounds={rounds}", "--set", "tol=0",
             "--out", paths[-1])  # fmt: skip
    assert call("plot", paths[0]).stdout.split() == [
        str(tmp_path / f"r2.{k}") for k in ("png", "pdf")
    ]
    both = call("plot", *paths, "--out", tmp_path / "both", "--against", "bytes_up")
    assert both.exit_code == 0 and (tmp_path / "both.pdf").is_file()
    wrong = ("plot", paths[0], "--out", tmp_path / "x")
    assert "'round'" in refused_command(*wrong, "--against", "rond")
    assert "'objective'" in refused_command(*wrong, "--metric", "objectiv")
    assert not (tmp_path / "x.png").exists()

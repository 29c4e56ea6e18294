"""`fedcore run`, `compare` and `plot` on files of one's own."""

from __future__ import annotations

import itertools
import json
import sys
import time

import numpy as np
import pytest
import scipy.sparse
from click.testing import CliRunner

from fedcore.cli import main
from fedcore.datasets import own_files
from fedcore.errors import InputError, TableError
from fedcore.experiments import from_files
from fedcore.history import History
from fedcore.reports import comparison
from fedcore.sparse import SparseRows

NAMES = ["age", "dose", "iron"]


def call(*args):
    return CliRunner().invoke(main, list(map(str, args)))


def refused(*args):
    result = call(*args)
    assert result.exit_code == 1, result.output
    assert result.stderr.startswith("Error: ") and result.stderr.count("\n") == 1
    return result.stderr


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
    done = call("run", "block_krylov", *files, "-r", 2, "--out", out, *flags)
    assert done.exit_code == 0, done.output
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
    with pytest.raises(InputError) as told:
        own_files.read(path)
    assert told.value.advice[0].call.startswith("pip install pyarrow")


def test_real_parquet_is_read(tables, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({name: tables[0][:, i] for i, name in enumerate(NAMES)})
    parquet.write_table(table, tmp_path / "a.parquet")
    np.testing.assert_array_equal(own_files.read(tmp_path / "a.parquet").x, tables[0])


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
    assert listed["metrics"]["objective"]["at best"] == pytest.approx(
        0.5 * np.sum(np.linalg.svd(pooled)[1][1:] ** 2)
    )


def test_columns_are_matched_by_name(tables, tmp_path):
    paths = [csv(tmp_path / f"{i}.csv", x) for i, x in enumerate(tables)]
    csv(paths[1], tables[1][:, ::-1], names=NAMES[::-1])
    clients = from_files.make([str(p) for p in paths]).problem.clients
    for client, x in zip(clients, tables, strict=True):
        np.testing.assert_array_equal(client, x)
    csv(paths[1], tables[1], names=["age", "dose", "lead"])
    says = refused("run", "ssi", *paths, "-r", 1)
    assert f"not in {paths[1]}" in says and "--without iron" in says
    paths[1].write_text(paths[1].read_text().split("\n", 1)[1])  # no line of names
    for order in (paths[:2], paths[1::-1]):
        says = refused("run", "ssi", *order, "-r", 1)
        assert f"{paths[1]} has no names of its columns, and {paths[0]} has (" in says


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
    with pytest.raises(InputError, match="the labels in column 'ward' are no numbers"):
        from_files.make(paths, labels="ward")
    assert "name their column with --labels" in refused("run", "fedrep_linear", *paths, "-r", 1)
    done = call("run", "fedrep_linear", *paths, "-r", 1, "--labels", "iron", "--without", "ward",
                "--set", "rounds=2", "--metric", "training_loss")  # fmt: skip
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("age,dose,iron\n1,2,3\n4,,6\n", "line 3"),
        ("age,dose,iron\n1,2,3\n4,n/a,6\n", "line 3"),
        ("age,dose,iron\n1,2,3\n\n4,nan,6\n", "line 4"),
        ("age,dose\n1,NaN\n", "--without dose"),
        ("age,dose\n1,inf\n", "--without dose"),
        ("age,dose,iron\n1,2,3\n4,5\n", "line 3: 2 cells, and the first line has 3"),
        ("age,dose\n1,5,2,5\n3,5,4,1\n", "line 2: 4 cells, and the first line has 2"),
        ("age,dose\n1,5\n3,5,4\n", "line 3: 3 cells, and the first line has 2"),
        (",age,dose\n0.5,1,5\n1,3,5\n", "without a name"),
        ("age,,dose\n1,5,2\n3,5,2\n", "without a name"),
        ("age,dose,dose\n1,2,3\n", "'dose' (2 columns of"),
        ("age,dose,iron\n", "has no numbers"),
        ("", "has no numbers"),
        ("age;dose\n1,500;2\n", "--decimal ,"),
        ('age,dose\n"1,500.5",2\n', "--without age"),
        ("age dose\n1 5\n", "'age dose'"),
        ("age,ward\n1,north\n", "--without ward"),
        ("age,blood type\n1,N/A\n", "--without 'blood type'"),
    ],
)
def test_a_wrong_cell_is_named(text, says, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(text, encoding="utf-8")
    message = refused("run", "ssi", path, "-r", 1)
    assert str(path) in message and says in message


def test_rows_that_do_not_say_whose_they_are_are_no_client_of_their_own(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("age,dose,ward\n1,2,north\n3,5, \n4,1,south\n")
    with pytest.raises(TableError) as told:
        from_files.make([str(path)], by="ward")
    assert (told.value.file, told.value.column, told.value.row) == (str(path), "ward", 1)
    left = from_files.make([str(path)], by="ward", **told.value.advice[0].options)
    assert left.clients == ["north", "south"]
    for number, empty in enumerate(([1.0, np.nan, 2.0], ["a", "b", ""])):
        np.savez(packed := tmp_path / f"{number}.npz", x=np.eye(3), ward=empty)
        assert "'ward' (1 of 3 missing" in refused("run", "ssi", packed, "-r", 1, "--by", "ward")


@pytest.mark.parametrize("option", ["--without", "--by", "--labels"])
@pytest.mark.parametrize(("text", "line"), [("1,5,2,5\n3,5,4,1\n", 2), ("1,5,2\n3,5,4,1\n", 3)])
def test_a_row_that_is_too_long_is_refused_with_a_column_apart(option, text, line, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f"age,dose,iron\n{text}")
    says = refused("run", "ssi", path, "-r", 1, option, "iron")
    assert f"{path}, line {line}: 4 cells, and the first line has 3" in says


def test_other_wrong_files_are_named(files, tmp_path):
    gone = tmp_path / "gone.csv"
    assert f"there is no file {gone}" in refused("run", "ssi", gone, "-r", 1)
    latin = tmp_path / "latin.csv"
    latin.write_bytes("größe,b\n1,2\n".encode("latin-1"))
    assert "no text in UTF-8" in refused("run", "ssi", latin, "-r", 1)
    packed = tmp_path / "two.npz"
    np.savez(packed, a=np.eye(3), b=np.eye(3))
    assert "save one matrix, a row a sample, and" in refused("run", "ssi", packed, "-r", 1)
    whole = packed.read_bytes()
    for content in (b"PK nonsense", b"hello", b"", whole[: len(whole) // 2]):
        packed.write_bytes(content)
        assert f"{packed} cannot be read: " in (says := refused("run", "ssi", packed, "-r", 1))
        assert "pickle" not in says, "NumPy's advice is for those who trust the file"
    objects = tmp_path / "o.npy"
    np.save(objects, np.array([[None]]), allow_pickle=True)
    assert "save x.astype(float)" in refused("run", "ssi", objects, "-r", 1)
    twice = refused("run", "ssi", files[0], files[1], files[0], "-r", 1)
    assert f"{files[0]} is given twice, and each file is one client: drop it" in twice
    other = tmp_path / "a.docx"
    other.write_text("x")
    says = refused("run", "ssi", other, "-r", 1)
    assert "its ending is that of no table: save it as one of .csv, .libsvm" in says
    assert "did you mean 'age'" in refused("run", "ssi", files[0], "-r", 1, "--by", "agee")
    assert "--clients is not for files" in refused("run", "ssi", *files, "-r", 1, "--clients", 2)
    assert "--by is not for a data set" in refused("run", "ssi", "w8a", "-r", 1, "--by", "age")
    assert "unknown data set 'w8b': did you mean 'w8a'" in refused("run", "ssi", "w8b", "-r", 1)


def test_errors_on_rows_and_labels_name_the_file_or_the_client(files, tables, tmp_path):
    says = refused("run", "noisy_power", *files, "-r", 1, "--simulate")
    assert f"client 0 ('{files[0]}'): row {np.linalg.norm(tables[0], axis=1).argmax()} has" in says
    wards = csv(tmp_path / "wards.csv", tables[0], extra=["b", "a"] * 10)
    says = refused("run", "noisy_power", wards, "-r", 1, "--simulate", "--by", "ward")
    assert "client 0 ('a'): row" in says
    bad = csv(tmp_path / "bad.csv", tables[1], extra=["1", "nan"] * 6)
    good = csv(tmp_path / "good.csv", tables[1], extra=["1", "2"] * 6)
    with pytest.raises(InputError, match=rf"labels of client 1 \('{bad}'\) have nan at row 1"):
        from_files.make([str(good), str(bad)], labels="ward")


def test_a_client_that_can_hold_nothing_out_is_named(tables, tmp_path):
    paths = [csv(tmp_path / f"{i}.csv", x[: 20 - 19 * i]) for i, x in enumerate(tables[:2])]
    says = refused("run", "fedavg", *paths, "--labels", "iron", "--set", "model=tiny_mlp")
    assert f"client 1 ('{paths[1]}'): a client with 1 sample cannot hold out 0.2" in says
    assert says.endswith(": leave its file out\n")


def test_out_of_compare_is_a_folder(files, tmp_path):
    says = refused("compare", "ssi", *files, "-r", 1, "--out", tmp_path / "run.h5")
    assert "compare keeps a history for each algorithm in a folder: name a folder" in says
    assert not (tmp_path / "run.h5").exists()


def test_out_is_a_history_in_a_folder_that_is_there(files, tmp_path):
    says = refused("run", "ssi", *files, "-r", 1, "--out", tmp_path / "run.csv")
    assert "let its name end in .h5" in says
    says = refused("run", "ssi", *files, "-r", 1, "--out", tmp_path / "no" / "run.h5")
    assert f"there is no folder {tmp_path / 'no'}" in says and not (tmp_path / "no").exists()


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
    done = call("run", "block_krylov", *files, "-r", 2, "--out", out, *["--center"] * center)
    assert done.exit_code == 0, done.output
    S = np.vstack(sparse_tables)
    sigma = np.linalg.svd(S - S.mean(axis=0) if center else S)[1]
    # Rounding; the run ends at a sine of 1e-8, to which the objective is quadratic.
    found = History.load(out).columns["objective"][0, -1]
    assert found == pytest.approx(0.5 * np.sum(sigma[2:] ** 2), rel=1e-12)


def test_time_of_a_wide_file_grows_with_its_columns(tmp_path):
    seconds = []
    for width in (10_000, 80_000):
        paths = [tmp_path / f"{width}-{i}.npz" for i in range(2)]
        names = np.arange(width).astype(str)
        for path, own in zip(paths, (names, names[::-1]), strict=True):
            np.savez(path, x=np.ones((2, width)), columns=own)
        start = time.process_time()
        own_files.together(paths)
        seconds.append(time.process_time() - start)
    assert seconds[1] < 24 * max(seconds[0], 0.05)  # 8 columns to one; their square is 64


def test_the_labels_of_libsvm_files_say_whose_a_row_is(sparse_tables, tmp_path):
    both = libsvm(tmp_path / "all.svm", np.vstack(sparse_tables), [7] * 20 + [-1] * 12)
    problem = from_files.make([str(both)], by="label", without=["2"]).problem
    assert problem.clients.sparse and problem.clients.shapes == [(12, 5), (20, 5)]
    kept = [0, 2, 3, 4, 5]
    for client, x in zip(problem.clients, reversed(sparse_tables), strict=True):
        np.testing.assert_array_equal(client.toarray(), x[:, kept])


def test_sparse_files_are_refused_with_a_sentence(sparse_tables, tables, tmp_path):
    one, _ = sparse_files(tmp_path, sparse_tables, "svm")
    dense = tmp_path / "dense.npz"
    np.savez(dense, x=np.ones((5, 6)))
    assert "one_shot needs dense samples" in refused("run", "one_shot", one, "-r", 2)
    same_names = sparse_files(tmp_path, sparse_tables, "npz")[0]
    mixed = refused("run", "ssi", same_names, dense, "-r", 2)
    assert f"client 1 ('{dense}') is dense and client 0 ('{same_names}') is sparse" in mixed
    pooled = refused("run", "ssi", same_names, dense, "-r", 2, "--by", "3")
    assert pooled == mixed
    broken = scipy.sparse.csr_array(sparse_tables[0])
    broken.data[3] = np.nan
    scipy.sparse.save_npz(tmp_path / "nan.npz", broken)
    assert "nan.npz has nan at row" in refused("run", "ssi", tmp_path / "nan.npz", "-r", 2)
    (tmp_path / "bad.svm").write_text("1 2:3 2:4\n")
    assert "bad.svm, line 1: expected an index above 2" in refused(
        "run", "ssi", tmp_path / "bad.svm", "-r", 1
    )
    (tmp_path / "none.svm").write_text("1\n-1\n")
    assert "has no numbers" in refused("run", "ssi", tmp_path / "none.svm", "-r", 1)


def test_compare_prints_a_table_with_the_best_values_and_draws(files, tables, tmp_path):
    command = ["compare", "ssi", "one_shot", "block_krylov", *files, "-r", 1, "--center"]
    done = call(*command, "--plot", tmp_path / "p", "--out", tmp_path / "h", "--repeats", 2)
    assert done.exit_code == 0, done.output
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


def test_compare_gives_parameters_to_all_that_have_them_or_to_one(files):
    command = ["compare", "ssi", "local_power", *files, "-r", 1, "--json"]
    found = json.loads(call(*command, "--set", "rounds=3", "--set", "ssi.rounds=2").stdout)
    assert {name: f["params"]["rounds"] for name, f in found.items()} == {
        "ssi": 2,
        "local_power": 3,
    }
    tol = json.loads(call(*command, "--set", "tol=0.1", "--set", "rounds=2").stdout)
    assert "tol" not in tol["local_power"]["params"] and tol["ssi"]["params"]["tol"] == 0.1
    assert "none of ssi, local_power has this parameter" in refused(*command, "--set", "x=1")
    assert "did you mean 'rounds'? known: " in refused(*command, "--set", "rouns=1")
    other = call(*command, "--set", "sssi.rounds=1")
    assert other.exit_code == 2
    assert "'sssi' of 'sssi.rounds=1' is none of the algorithms: did you mean 'ssi'" in other.stderr
    assert "did you mean 'ssi'" in refused("compare", "ssj", "w8a", "-r", 1)
    assert "did you mean 'faps'" in refused("compare", "ssi", "fapz", "w8a", "-r", 1)
    assert call("compare", "ssi", "-r", 1).exit_code == 2
    says = refused("compare", "ssi", "fedavg", *files, "-r", 1)
    assert "networks and subspaces have no measure in common" in says


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
    says = "components are arbitrary (1 of 1): singular values 1 and 2 are too near each other"
    for r, told in ((1, True), (3, False)):
        out = tmp_path / f"{r}.h5"
        done = call("run", "block_krylov", path, "-r", r, "--out", out)
        assert "converged (1 of 1 within the tolerance)" in done.stdout
        assert (says in done.stdout) is told, done.stdout
        assert (says in call("show", out).stdout) is told


def test_what_a_figure_of_compare_says_has_room(files, tmp_path, monkeypatch):
    drawn = {}
    panel = comparison._panel

    def kept(ax, histories, metric, axis, looks):
        panel(ax, histories, metric, axis, looks)
        drawn[metric, axis] = ax

    monkeypatch.setattr(comparison, "_panel", kept)
    private = ["compare", "noisy_power", "analyze_gauss", *files, "-r", 1, "--set", "clip=true"]
    assert call(*private, "--plot", tmp_path / "p").exit_code == 0
    label = drawn["objective", "bytes_up"].yaxis.label
    assert label.get_text() == "objective over the best possible, less 1\n (not released)"
    box, figure = label.get_window_extent(), label.get_figure(root=True)
    assert box.y0 >= 0 and box.y1 <= figure.bbox.y1
    drawn.clear()
    rng, names = np.random.default_rng(2), list("abcdef")
    wide = [csv(tmp_path / f"w{i}.csv", rng.standard_normal((20, 6)), names) for i in range(3)]
    command = ["compare", "fedrep_linear", "fedsgd_linear", *wide, "-r", 2, "--labels", "f"]
    command += ["--set", "fedsgd_linear.rounds=5"]
    assert call(*command, "--plot", tmp_path / "q").exit_code == 0
    shown = [t for t in drawn["training_loss", "bytes_up"].get_xticklabels() if t.get_text()]
    edges = [t.get_window_extent() for t in shown]
    assert all(a.x1 < b.x0 for a, b in itertools.pairwise(edges)), [t.get_text() for t in shown]
    drawn.clear()
    assert call("compare", "one_shot", *files, "-r", 1, "--plot", tmp_path / "r").exit_code == 0
    assert {axis for _, axis in drawn} == {"round"}, "one_shot has one round and no iteration"


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
    assert "unknown axis 'rond': did you mean 'round'" in refused(*wrong, "--against", "rond")
    assert "did you mean 'objective'" in refused(*wrong, "--metric", "objectiv")
    assert not (tmp_path / "x.png").exists()


def test_a_history_is_no_problem(files, tmp_path):
    out = tmp_path / "h.h5"
    assert call("run", "ssi", *files, "-r", 1, "--out", out).exit_code == 0
    says = refused("run", "ssi", out, "-r", 1)
    assert f"{out} is a history, not a problem: fedcore show {out}" in says
    out.write_bytes(out.read_bytes()[:3000])
    assert "is not a whole problem file" in refused("run", "ssi", out, "-r", 1)


def test_plots_go_into_a_folder_that_is_there(files, tmp_path):
    out = tmp_path / "h.h5"
    assert call("run", "ssi", *files, "-r", 1, "--out", out).exit_code == 0
    gone = tmp_path / "no" / "deeper"
    for says in (
        refused("plot", out, "--out", gone / "x"),
        refused("compare", "ssi", *files, "-r", 1, "--plot", gone / "x"),
    ):
        assert f"there is no folder {gone}: make it first" in says
    assert not (tmp_path / "no").exists()


def test_the_mean_of_a_private_run_is_refused_in_words_of_the_command_line(files):
    says = refused("run", "analyze_gauss", *files, "-r", 1, "--set", "clip=true", "--center")
    assert "drop --center, and subtract a public mean" in says and "center=False" not in says


@pytest.mark.parametrize("command", ["run", "compare"])
def test_one_is_counted_as_one(command, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("age\n1\n2\n4\n")
    done = call(command, "block_krylov", path, "-r", 1)
    assert done.exit_code == 0, done.output
    assert "1 client, 3 samples, 1 feature; 1 repeat" in done.output
    assert "1 column: age" in done.output

"""What `fedcore deploy` writes, how a site reads it, and the server's program, without FLARE."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from click.testing import CliRunner
from near_flare import Near

from fedcore.cli import main
from fedcore.errors import ConfigError, DataError, InputError, RefusedError
from fedcore.experiments import deployed, deployment, flare_kit
from fedcore.experiments.deployment import SiteFile, Task
from fedcore.federation.flare_group import LostError
from fedcore.federation.flare_member import Member
from fedcore.files import hdf5
from fedcore.history import History
from fedcore.problems import storage
from fedcore.problems.problem import Problem
from fedcore.reports.endings import ending
from fedcore.reports.terminal import outcome

SITES = ("north", "south", "west")


def call(*words, cwd=None):
    return CliRunner().invoke(main, list(map(str, words)))


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return [rng.standard_normal((n, 6)) * 0.1 * 0.7 ** np.arange(6) for n in (12, 9, 15)]


@pytest.fixture
def tables(rows, tmp_path):
    """Write a table for each site; that of the second has its columns in another order."""
    names = [f"f{i}" for i in range(6)]
    for i, (site, x) in enumerate(zip(SITES, rows, strict=True)):
        order = range(6) if i != 1 else (3, 1, 0, 2, 5, 4)
        header = ",".join(names[j] for j in order)
        path = tmp_path / f"{site}.csv"
        np.savetxt(path, x[:, list(order)], "%.17g", ",", header=header, comments="")
    return tmp_path


def sites_of(folder, ending=".csv"):
    return [word for s in SITES for word in ("--site", f"{s}={folder / s}{ending}")]


def members(out):
    folders = [out / "sites" / site for site in SITES]
    files = [SiteFile.read(folder) for folder in folders]
    return [Member(f.folder.name, "job", f.rules, f.reader, f.folder, "1") for f in files]


def deployed_run(out, link=None):
    """Run what was deployed, and return the folder of the server's files."""
    task = Task.read(out / "job/app_server/config/fedcore.json")
    target = out / "server"
    target.mkdir()
    deployed.lead(task, link or Near(members(out)), target)
    return target


def plain(files, out, *words):
    done = call("run", *words, *files, "--engine", "plain", "--out", out)
    assert done.exit_code == 0, done.output
    return History.load(out)


@pytest.mark.parametrize("center", [[], ["--center"]])
def test_sites_with_their_own_tables_find_what_one_process_finds(tables, center):
    words = ("ssi", "-r", "2", "--set", "rounds=15", "--seed", "3", "--repeats", "2", *center)
    done = call("deploy", *words, *sites_of(tables), "--out", tables / "out")
    assert done.exit_code == 0, done.output
    found = History.load(deployed_run(tables / "out") / "history.h5")
    other = plain([tables / f"{s}.csv" for s in SITES], tables / "plain.h5", *words)
    assert found.final["basis"].tobytes() == other.final["basis"].tobytes()
    np.testing.assert_array_equal(found["bytes_up"], other["bytes_up"])
    assert found.about["engine"] == "flare" and "sha256" not in found.about["problem"]
    assert found.about["seed"] == other.about["seed"]


def test_clients_of_a_problem_file_have_the_streams_of_a_run_on_it(rows, tmp_path):
    path = tmp_path / "p.h5"
    storage.save(Problem("drawn", rows), path)
    sites = [word for i, s in enumerate(SITES) for word in ("--site", f"{s}={path}:{i}")]
    words = ("power_gd", "-r", "2", "--set", "local_steps=9")
    assert call("deploy", *words, *sites, "--out", tmp_path / "out").exit_code == 0
    found = History.load(deployed_run(tmp_path / "out") / "history.h5")
    other = plain([path], tmp_path / "plain.h5", *words)
    assert found.final["V"].tobytes() == other.final["V"].tobytes()


OVERWRITTEN = pytest.mark.fault(
    "damaged",
    "the large file of a problem overwritten or cut off in place while it is read",
    told="… was overwritten in place while it was read: …",
)


@pytest.mark.parametrize("written", [pytest.param(True, marks=OVERWRITTEN), False])
def test_a_site_keeps_no_result_of_a_file_overwritten_in_place(
    rows, tmp_path, monkeypatch, written
):
    """It checked its samples when it first read them, and does so again at the end."""
    monkeypatch.setattr(hdf5, "LARGE", 100)
    path, out = tmp_path / "p.h5", tmp_path / "out"
    storage.save(Problem("drawn", rows), path)
    os.utime(path, (1e9, 1e9))
    sites = [word for i, s in enumerate(SITES) for word in ("--site", f"{s}={path}:{i}")]
    assert call("deploy", "power_gd", "-r", "2", *sites, "--out", out).exit_code == 0
    near = Near(members(out))

    class Link:
        def call(self, messages):
            replies = near.call(messages)
            if len(near.sent) == 3 and written:  # they have joined, begun, and used their samples
                with open(path, "r+b") as raw:
                    raw.seek(path.read_bytes().index(rows[1].tobytes()))
                    raw.write(bytes(8))
            return replies

    def results():
        return [list((out / "sites" / site).glob("results/*/run0.npz")) for site in SITES]

    if not written:
        deployed_run(out, Link())
        assert len(near.sent) > 4 and all(results())
        return
    with pytest.raises(
        DataError, match=r"^north: .*p\.h5 was overwritten in place while it was read: "
    ):
        deployed_run(out, Link())
    assert not any(results()) and not (out / "server/history.h5").exists()


def test_sparse_tables_stay_sparse(rows, tmp_path):
    for site, x in zip(SITES, rows, strict=True):
        scipy.sparse.save_npz(tmp_path / site, scipy.sparse.csr_array(np.where(x > 0, x, 0)))
    words = ("ssi", "-r", "2", "--set", "rounds=5")
    given = (*sites_of(tmp_path, ".npz"), "--out", tmp_path / "o")
    assert call("deploy", *words, *given).exit_code == 0
    found = History.load(deployed_run(tmp_path / "o") / "history.h5")
    other = plain([tmp_path / f"{s}.npz" for s in SITES], tmp_path / "plain.h5", *words)
    assert found.final["basis"].tobytes() == other.final["basis"].tobytes()


def test_tables_that_end_early_are_widened_to_the_widest(rows, tmp_path):
    for site, x, width in zip(SITES, rows, (5, 6, 4), strict=True):
        lines = [
            "1 " + " ".join(f"{j + 1}:{v:.17g}" for j, v in enumerate(row[:width])) for row in x
        ]
        (tmp_path / f"{site}.svm").write_text("\n".join(lines) + "\n")
    words = ("ssi", "-r", "2", "--set", "rounds=5")
    given = (*sites_of(tmp_path, ".svm"), "--out", tmp_path / "out")
    assert call("deploy", *words, *given).exit_code == 0
    found = History.load(deployed_run(tmp_path / "out") / "history.h5")
    other = plain([tmp_path / f"{s}.svm" for s in SITES], tmp_path / "plain.h5", *words)
    assert found.final["basis"].shape == (1, 6, 2)
    assert found.final["basis"].tobytes() == other.final["basis"].tobytes()


def test_labels_are_read_and_stay(rows, tmp_path):
    for site, x in zip(SITES, rows, strict=True):
        table = np.column_stack([x, x @ np.arange(6.0)])
        header = "a,b,c,d,e,f,cost"
        np.savetxt(tmp_path / f"{site}.csv", table, "%.17g", ",", header=header, comments="")
    words = ("fedrep_linear", "-r", "2", "--set", "rounds=3", "--labels", "cost")
    given = (*sites_of(tmp_path), "--evaluation", "--out", tmp_path / "out")
    assert call("deploy", *words, *given).exit_code == 0
    found = History.load(deployed_run(tmp_path / "out") / "history.h5")
    other = plain([tmp_path / f"{s}.csv" for s in SITES], tmp_path / "plain.h5", *words)
    assert found.final["V"].tobytes() == other.final["V"].tobytes()


def test_a_job_has_no_code_and_a_sites_file_says_what_it_allows(tables):
    words = ("noisy_power", "-r", "2", "--set", "epsilon=1", "--max-epsilon", "2.5")
    assert call("deploy", *words, *sites_of(tables), "--out", tables / "out").exit_code == 0
    job = sorted(p.relative_to(tables / "out/job") for p in (tables / "out/job").rglob("*.*"))
    assert {path.suffix for path in job} == {".json"}
    text = (tables / "out/job/app_site/config/config_fed_client.json").read_text()
    assert "fedcore.experiments.flare_client.Client" in text and "north" not in text
    found = SiteFile.read(tables / "out/sites/north")
    rules = found.rules
    assert rules.policy == (2.5, ("fedcore",), False)
    assert rules.max_delta == 1e-5 and not rules.tell_samples
    assert [p.name for p in found.folder.iterdir()] == ["site.yaml"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("site: north\n", "'data' is a required property"),
        ("site: north\ndata: x.csv\nepsilon: 3\n", "epsilon"),
        ("site: north\ndata: x.csv\nmax_epsilon: -1\n", "max_epsilon"),
        ("site: north\ndata: x.csv\nmax_delta: 2\n", "max_delta"),
        ("site: north\ndata: x.csv\ntell_samples: false\n", "only beside max_epsilon"),
        ("site: a/b\ndata: x.csv\n", "site"),
        ("site: [", "site.yaml"),
    ],
)
def test_a_wrong_file_of_a_site_is_one_sentence(text, said, tmp_path):
    (tmp_path / "site.yaml").write_text(text)
    with pytest.raises(ConfigError, match=said):
        SiteFile.read(tmp_path)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("gone.csv", "there is no file"),
        ("two.h5", "has 2 clients: say whose it is, as in .*two.h5:0"),
        ("two.h5:2", "has the clients 0 to 1, and no client 2"),
        ("draws.h5:0", "has 2 draws"),
    ],
)
def test_data_that_are_not_there_are_one_sentence(data, said, rows, tmp_path):
    storage.save(Problem("p", rows[:2]), tmp_path / "two.h5")
    storage.save([Problem("p", rows[:2])] * 2, tmp_path / "draws.h5")
    (tmp_path / "site.yaml").write_text(f"site: north\ndata: {data}\n")
    with pytest.raises((DataError, InputError), match=said):
        SiteFile.read(tmp_path).reader(None)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["ssi", "--site", "a", "-r", "2"], 2, "'a' is not NAME=DATA"),
        (["ssi", "--site", "a.b=x.csv", "-r", "2"], 2, "is not NAME=DATA"),
        (["ssi", "--site", "server=x.csv", "-r", "2"], 2, "is not NAME=DATA"),
        (
            ["ssi", "--site", "a=x.csv", "--site", "a=y.csv", "-r", "2"],
            1,
            "--site a is given twice",
        ),
        (["ssi", "--site", "a=x.doc", "-r", "2"], 1, "cannot tell the format of x.doc"),
        (["ssi", "--site", "a=x.csv:3", "-r", "2"], 1, "cannot tell the format of x.csv:3"),
        (["ssi", "--site", "a=x.csv"], 2, "Missing option '--components'"),
        (["ssi", "--site", "a=x.csv", "-r", "2", "--set", "round=2"], 1, "did you mean 'rounds'"),
        (["ssi", "--site", "a=x.csv", "-r", "2", "--metric", "no"], 1, "unknown metric"),
        (["fedrep_linear", "--site", "a=x.csv", "-r", "2"], 1, "learns from labels"),
        (["fedavg", "--site", "a=x.csv", "--labels", "y"], 1, "networks"),
        (["ssi", "--site", "a=x.csv", "-r", "2", "--max-delta", "3"], 1, "max_delta"),
    ],
)
def test_what_cannot_be_deployed_is_one_sentence(words, status, said, tmp_path):
    done = call("deploy", *words, "--out", tmp_path / "out")
    assert done.exit_code == status and said in done.stderr
    assert not (tmp_path / "out").exists()


def test_the_hint_to_clip_long_rows_is_typed_behind_the_command(tables, caplog):
    path = tables / "west.csv"
    path.write_text(f"{path.read_text()}9,0,0,0,0,0\n")  # a row of norm 9
    words = ("deploy", "noisy_power", "-r", "2", "--set", "epsilon=1", *sites_of(tables))
    first = (*words, "--out", tables / "out")
    assert call(*first).exit_code == 0
    with pytest.raises(InputError, match=r"^west: client 2: row 15 has norm 9,") as error:
        deployed_run(tables / "out")
    hint = str(error.value).partition("the same command and behind it ")[2]
    assert hint == "--out NEW_FOLDER --set clip=true" and hint in caplog.text
    again = hint.replace("NEW_FOLDER", str(tables / "new")).split()
    assert call(*first, *again).exit_code == 0
    assert History.load(deployed_run(tables / "new") / "history.h5").last("epsilon")[0] > 0.9


def test_a_folder_with_files_is_not_written_into(tables):
    done = call("deploy", "ssi", *sites_of(tables), "-r", "2", "--out", tables)
    assert done.exit_code == 1 and "is not empty" in done.stderr


def test_without_flare_the_simulator_says_how_to_get_it(tables, monkeypatch):
    monkeypatch.setattr(flare_kit, "find_spec", lambda name: None)
    words = ("ssi", *sites_of(tables), "-r", "2", "--out", tables / "out", "--simulate")
    done = call("deploy", *words)
    assert done.exit_code == 1 and "make flare" in done.stderr and done.stderr.count("\n") == 1
    assert not (tables / "out").exists() and "nvflare" not in sys.modules


@pytest.mark.parametrize("after", [0, 4])
def test_a_run_that_ends_early_leaves_a_marked_history_and_no_other(tables, after):
    words = ("ssi", "-r", "2", "--set", "rounds=30", "--set", "tol=0")
    call("deploy", *words, *sites_of(tables), "--out", tables / "out")
    near, calls = Near(members(tables / "out")), iter(range(100))

    def lost(messages):
        if next(calls) == 2 + after:  # after the members have joined and begun
            raise LostError("the site south was lost")
        return near.call(messages)

    with pytest.raises(LostError):
        deployed_run(tables / "out", SimpleNamespace(call=lost))
    target = tables / "out/server"
    assert {p.name for p in target.iterdir()} == {"failed.txt", "history.incomplete.h5"}
    assert (target / "failed.txt").read_text() == "the site south was lost\n"
    found = History.load(target / "history.incomplete.h5")
    assert found["iteration"].tolist() == [list(range(after + 1))]
    assert found.about["incomplete"] == "the site south was lost"
    assert "INCOMPLETE, the run was ended: the site south was lost" in outcome(found)
    assert ending(found)["incomplete"] == "the site south was lost"


def test_an_incomplete_private_history_has_released_columns_alone(tables):
    words = ("noisy_power", "-r", "2", "--set", "epsilon=1", "--set", "rounds=9")
    call("deploy", *words, *sites_of(tables), "--max-epsilon", "0.2", "--out", tables / "out")
    with pytest.raises(RefusedError, match="north: client 0"):
        deployed_run(tables / "out")
    found = History.load(tables / "out/server/history.incomplete.h5")
    assert "epsilon" in found.columns and "epsilon" in outcome(found)


def test_a_measure_that_reads_data_ends_the_run_with_a_sentence(tables):
    words = ("ssi", "-r", "2", "--metric", "objective")
    call("deploy", *words, *sites_of(tables), "--out", tables / "out")
    with pytest.raises(RefusedError, match="the clients' data stay with their owners"):
        deployed_run(tables / "out")


def test_tables_with_other_columns_are_refused_by_name(tables):
    path = tables / "west.csv"
    path.write_text(path.read_text().replace("f3", "g3", 1))
    call("deploy", "ssi", "-r", "2", *sites_of(tables), "--out", tables / "out")
    with pytest.raises(InputError, match=r"west: .*has no column"):
        deployed_run(tables / "out")


@pytest.fixture
def kit(tmp_path):
    """Write what matters of a startup kit."""
    local = tmp_path / "kit" / "local"
    local.mkdir(parents=True)
    resources = {"class_allow_list": ["nvflare."], "components": [{"root": "/tmp/nvflare/jobs"}]}
    (local / "resources.json.default").write_text(json.dumps(resources))
    rights = {"project_admin": "any", "lead": {"byoc": "any", "submit_job": "any"}}
    (local / "authorization.json.default").write_text(json.dumps({"permissions": rights}))
    return tmp_path / "kit"


def test_a_joined_kit_runs_fedcore_and_no_code(kit, tables):
    call("deploy", "ssi", "-r", "2", *sites_of(tables), "--out", tables / "out")
    folder = tables / "out/sites/north"
    for _ in range(2):  # a second time changes nothing
        done = call("join", kit, folder)
        assert done.exit_code == 0, done.output
    read = {p.name: json.loads(p.read_text()) for p in (kit / "local").glob("*.json")}
    assert read["fedcore.json"] == {"north": str(folder.resolve())}
    resources = read["resources.json"]
    assert resources["class_allow_list"] == [deployment.EXECUTOR, deployment.CLIENT]
    assert resources["allow_log_streaming"] is False
    assert resources["components"] == [{"root": "/tmp/nvflare/jobs"}]
    for rights in read["authorization.json"]["permissions"].values():
        assert rights["byoc"] == rights["shell_commands"] == "none"
        assert rights["submit_job"] == "any"


def test_the_servers_kit_keeps_its_jobs_to_itself(kit):
    assert call("join", kit).exit_code == 0
    resources = json.loads((kit / "local/resources.json").read_text())
    assert resources["class_allow_list"] == [deployment.CONTROLLER, deployment.SERVER]
    assert resources["components"] == [{"root": f"{kit.resolve()}/jobs"}]
    assert not (kit / "local/fedcore.json").exists()


@pytest.mark.parametrize("what", ["no kit", "no json"])
def test_what_is_no_kit_is_one_sentence(what, kit, tmp_path):
    if what == "no json":
        (kit / "local/resources.json").write_text("{")
    done = call("join", kit if what == "no json" else tmp_path)
    assert done.exit_code == 1 and done.stderr.count("\n") == 1
    assert ("is no JSON" if what == "no json" else "no startup kit of FLARE") in done.stderr


def test_the_classes_that_a_job_names_are_where_it_says():
    """Their modules need FLARE; their files and classes are looked at."""
    for name in (deployment.SERVER, deployment.CLIENT):
        module, _, kind = name.rpartition(".")
        path = Path(deployment.__file__).with_name(module.rpartition(".")[2] + ".py")
        assert f"\nclass {kind}:" in path.read_text()

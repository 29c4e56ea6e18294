"""The command line, on a stand-in that needs neither files nor scikit-learn."""

import dataclasses
import json
import os
import shlex
import signal
import subprocess
import sys
import types
import warnings

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import fedcore.algorithms
from fedcore import datasets, generators
from fedcore.cli import main
from fedcore.cli.options import parsed, partition
from fedcore.deep.models import MODELS
from fedcore.errors import ConfigError, DataError
from fedcore.history import History
from fedcore.parts.residuals import TOL
from fedcore.reports import verdict_pages, verdicts
from fedcore.reports.terminal import as_bytes

RUN = ["run", "power_gd", "w8a", "--surrogate", "--components", "3", "--set", "local_steps=4"]


def call(*args):
    return CliRunner().invoke(main, list(args))


def refused(*args):
    """Run a command that must fail for a user's reason; return its one sentence."""
    result = call(*args)
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.fixture
def history_file(tmp_path):
    path = tmp_path / "history.h5"
    assert call(*RUN, "--repeats", "2", "--out", str(path)).exit_code == 0
    return path


def test_help_and_version():
    assert "fedcore run block_krylov w8a" in call("--help").output
    assert call("--version").output == f"fedcore, version {fedcore.__version__}\n"
    for name in main.commands:
        text = call(name, "--help").output
        assert "Example" in text and f"fedcore {name}" in text


@pytest.mark.parametrize("command", [(), ("run",)])
def test_the_runs_that_help_proposes_converge(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = call(*command, "--help").output
    typed = [shlex.split(line) for line in text.splitlines() if " fedcore run " in f" {line} "]
    typed = [words for words in typed if words[:2] == ["fedcore", "run"]]
    typed = [words for words in typed if fedcore.algorithms.get(words[2]).takes("tol")]
    assert len(typed) == (3 if command else 1)
    for seed, word in enumerate(word for words in typed for word in words if ".csv" in word):
        x = np.random.default_rng(seed).standard_normal((30, 4)) * [9, 5, 1, 0.5] + 7
        np.savetxt(word, x, delimiter=",", header="a,b,c,d", comments="")
    for words in typed:
        alone = "--surrogate" in words or any(word.endswith(".csv") for word in words)
        done = call(*words[1:], *([] if alone else ["--surrogate"]))
        assert done.exit_code == 0 and "\nconverged" in done.output, done.output


def test_help_imports_nothing_heavy():
    code = "import sys, fedcore.cli; print({'pyarrow', 'h5py', 'yaml', 'tqdm'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "set()\n"


def test_generators_and_partitions():
    listed = call("generators").output
    assert "low_rank: Low-rank matrix plus white noise.\n    n_clients=25, samples=200" in listed
    found = {one["name"]: one for one in json.loads(call("generators", "--json").output)}
    assert set(found) >= set(generators.names())
    assert found["low_rank"]["parameters"]["noise"] == "0.0"
    listed = call("partitions").output
    assert "label: Give each label its own client, labels ascending; every sample is" in listed
    found = {one["name"]: one for one in json.loads(call("partitions", "--json").output)}
    assert found["dirichlet"]["parameters"]["clients"] == "required"
    assert found["label"]["parameters"] == {}
    for kind, one in found.items():  # they are what a partition's check asks for
        needed = [p for p, default in one["parameters"].items() if default == "required"]
        if needed:
            with pytest.raises(ConfigError, match=needed[0]):
                datasets.partition.check({"by": kind})


def test_algorithms():
    listed = call("algorithms").output
    assert "power_gd  " in listed and "Alternating gradient descent of Ward and Kolda" in listed
    one = " ".join(call("algorithms", "power_gd").output.split())
    assert "paper 'factorization'" in one
    assert "T, gradient steps on every client. [a whole number of at least 0; default 500]" in one
    assert "[one of initial, final; default initial]" in one
    assert ":look:" not in one  # for figures alone
    assert f"default {TOL:g}" in call("algorithms", "ssi").output  # of `fedcore run`
    theirs = " ".join(call("algorithms", "wk2023").output.split())
    assert "one more round. [a finite number above 0, or null; default null]" in theirs
    assert "[a finite number above 0; required]" in call("algorithms", "yd2021").output
    assert "did you mean 'power_gd'" in refused("algorithms", "pover_gd")
    networks = " ".join(call("algorithms", "fedrep").output.split())
    assert "cifar10_cnn 3 × 32 × 32; 0 to 9" in networks
    assert "femnist_mlp any number; 0 to 9" in networks
    described = json.loads(call("algorithms", "fedrep", "--json").stdout)["networks"]
    assert {n["name"] for n in described} == set(MODELS)


def test_defaults_of_parameters_are_values_in_json():
    def defaults(name):
        described = json.loads(call("algorithms", name, "--json").stdout)
        return {p["name"]: (p["required"], p["default"]) for p in described["parameters"]}

    ssi = defaults("ssi")
    assert ssi["tol"] == (False, TOL) and ssi["n_components"] == (True, None)
    noisy = defaults("noisy_power")
    assert noisy["clip"] == (False, False) and noisy["calibration"] == (False, "tight")
    assert noisy["delta"] == (False, 1e-6) and noisy["rounds"] == (False, 10)


def test_types_of_parameters_are_shown_as_they_are_written(monkeypatch):
    module = types.SimpleNamespace(
        __doc__="Theirs.", PAPER="theirs", run=None, communication=None,
        Params=dataclasses.make_dataclass(
            "Params",
            [("n_components", int), ("rounds", int, 3), ("limit", float | None, None),
             ("bins", "Sequence[int]", ()), ("clip", bool, False), ("start", object, None)],
        ),
    )  # fmt: skip
    theirs = fedcore.algorithms.Algorithm("theirs", module)
    monkeypatch.setattr("fedcore.algorithms.get", lambda name: theirs)
    shown = call("algorithms", "theirs").output
    assert "  rounds        [int; default 3]" in shown
    assert "  limit         [float | None; default null]" in shown
    assert "  bins          [Sequence[int]; default []]" in shown
    says = refused("run", "theirs", "w8a", "--surrogate", "-r", "2", "--set", "clip=maybe")
    assert "clip must be true or false, got 'maybe'" in says


BROKEN = {
    "unwritten": ("def run(:", "SyntaxError"),
    "needy": ("import no_such_package", "No module named 'no_such_package'"),
    "failing": ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
    "leaving": ("raise SystemExit(3)", "SystemExit: 3"),
    "empty": ("", "has no PAPER and no Params and no run and no communication"),
    "numbered": (
        "PAPER = 3\nParams = run = communication = None",
        "PAPER of their_numbered is 3: give it a name",
    ),
}
UNTITLED = """\"\"\" \"\"\"
from fedcore.algorithms.ssi import PAPER, Params, communication, run
"""


def test_broken_plug_ins_are_listed_and_take_nothing_else_down(tmp_path, installed):
    lines = "".join(f"{name} = their_{name}\n" for name in [*BROKEN, "untitled"])
    groups = ("algorithms", "metrics", "datasets")
    installed(tmp_path, "theirs", "".join(f"[fedcore.{group}]\n{lines}" for group in groups))
    for name, (source, _) in BROKEN.items():
        (tmp_path / f"their_{name}.py").write_text(source + "\n")
    (tmp_path / "their_untitled.py").write_text(UNTITLED)

    def program(*args):
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        return subprocess.run(
            [sys.executable, "-m", "fedcore", *args],
            capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path},
        )  # fmt: skip

    listed = program("algorithms")
    assert listed.returncode == 0 and "Traceback" not in listed.stderr
    assert "power_gd  " in listed.stdout
    for name, (_, reason) in BROKEN.items():
        (line,) = [line for line in listed.stdout.splitlines() if line.startswith(f"{name} ")]
        assert line.split()[1] == "broken" and reason in line
    (untitled,) = [line for line in listed.stdout.splitlines() if line.startswith("untitled ")]
    assert untitled.split() == ["untitled", "faps", "untitled"]
    one = program("algorithms", "leaving")
    assert one.returncode == 1 and one.stderr.startswith("Error: algorithm 'leaving' cannot be")
    assert "Traceback" not in one.stderr
    data = program("run", "power_gd", "unwritten", "-r", "2")
    assert data.returncode == 1 and "SyntaxError" in data.stderr and "Traceback" not in data.stderr
    good = program(*RUN, "--metric", "objective")
    assert good.returncode == 0, good.stderr
    wrong = program(*RUN, "--metric", "objectives")
    assert "did you mean 'objective'" in wrong.stderr and "no licence" in wrong.stderr


def test_a_broken_generator_is_named_and_hides_no_other(tmp_path, installed, monkeypatch):
    installed(
        tmp_path, "theirs", "[fedcore.generators]\nwrong = their_wrong\nempty = their_empty\n"
    )
    (tmp_path / "their_wrong.py").write_text("1 / 0\n")
    (tmp_path / "their_empty.py").write_text("")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "fedcore", "generators"],
        capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0 and "low_rank: " in done.stdout
    assert "'wrong'" in done.stderr and "'empty'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_command_that_a_fault_ends_says_which_one_and_where():
    code = """
import os, signal
from fedcore.cli import main
@main.command()
def reads():
    os.kill(os.getpid(), signal.SIGBUS)
main(["reads"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == -signal.SIGBUS
    assert "Bus error" in done.stderr and "in reads" in done.stderr


def test_datasets(tmp_path, monkeypatch):
    monkeypatch.delenv("FEDCORE_MIRROR", raising=False)
    result = call("datasets", "--raw", str(tmp_path))
    assert "w8a            obtainable" in result.output
    assert "data set 'celeba' needs" in result.output


def test_fetch(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "fedcore.datasets.fetch",
        lambda name, raw, mirror=None: asked.append((name, raw, mirror)) or [f"{raw}/{name}/file"],
    )
    result = call("fetch", "w8a", "mnist", "--raw", "r", "--mirror", "m")
    assert asked == [("w8a", "r", "m"), ("mnist", "r", "m")]
    assert result.output == "r/w8a/file\nr/mnist/file\n"
    assert "did you mean 'mnist'" in refused("fetch", "w8a", "mnits")
    assert len(asked) == 2


def test_run_prints_metrics_and_ledger():
    result = call(*RUN, "--clients", "4")
    assert result.exit_code == 0
    assert (
        "power_gd on w8a [surrogate data]: 4 clients, 5000 samples, 300 features" in result.output
    )
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["rounds", "1"] in lines
    assert ["up", "3,600", "scalars", "28.8", "kB"] in lines  # 4 clients x 300 x 3 doubles
    assert {"objective", "subspace_distance"} <= {line[0] for line in lines if line}


def rows_of(text):
    return [line.split() for line in text.splitlines() if line.strip()]


def test_run_and_show_print_the_best_value_and_that_of_all_zero(tmp_path):
    path = str(tmp_path / "h.h5")
    for repeats in ("1", "3"):
        printed = call(
            "run", "block_krylov", "w8a", "--surrogate", "-r", "3", "--set", "tol=1e-8",
            "--repeats", repeats, "--out", path,
        ).stdout  # fmt: skip
        sigma = History.load(path).reference["singular_values"]
        best, zero = 0.5 * np.sum(sigma[3:] ** 2), 0.5 * np.sum(sigma**2)
        for text in (printed, call("show", path).stdout):
            rows = rows_of(text)
            at = next(i for i, row in enumerate(rows) if row[0] == "objective")
            assert rows[at + 1][:2] == ["at", "best"] and rows[at + 2][:2] == ["all", "zero"]
            # Four digits are printed.
            assert float(rows[at][1]) == pytest.approx(best, rel=1e-3)
            assert [float(v) for v in rows[at + 1][2 : 2 + int(repeats)]] == pytest.approx(
                [best] * int(repeats), rel=1e-3
            )
            assert float(rows[at + 2][2]) == pytest.approx(zero, rel=1e-3)
            assert f"converged ({repeats} of {repeats} within" in text
            assert "zero everywhere" not in text


def test_run_and_show_say_that_a_run_has_diverged(tmp_path):
    path = str(tmp_path / "run.h5")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        printed = call("run", "power_gd", "w8a", "--surrogate", "-r", "3", "--set", "power=60",
                       "--set", "local_steps=1", "--out", path).stdout  # fmt: skip
    for text in (printed, call("show", path).stdout):
        assert "DIVERGED: not finite at the end (1 of 1)" in text
    assert "DIVERGED" not in call(*RUN).stdout


def test_run_says_when_it_ends_worse_than_nothing_and_when_rounds_ran_out():
    worse = call(*RUN, "--set", "power=1").stdout
    assert "objective is above that of a model that is zero everywhere" in worse
    short = call("run", "ssi", "w8a", "--surrogate", "-r", "3", "--set", "tol=1e-8", "--set",
                 "rounds=2").stdout  # fmt: skip
    assert "NOT converged: allow more rounds (0 of 1 within the tolerance)" in short


def test_same_seed_same_bytes(tmp_path):
    first, second, other = (tmp_path / name for name in ("a.h5", "b.h5", "c.h5"))
    for path, seed in ((first, "1"), (second, "1"), (other, "2")):
        call(*RUN, "--seed", seed, "--repeats", "2", "--out", str(path))
    assert first.read_bytes() == second.read_bytes() != other.read_bytes()


def test_partition_and_metric_and_reference(tmp_path):
    path = tmp_path / "h.h5"
    result = call(
        "run", "yd2021", "w8a", "--surrogate", "-r", "2", "--partition", "by=label", "--metric",
        "kappa", "--set", "sigma_max=reference", "--set", "sigma_r=reference", "--set", "rounds=1",
        "--out", str(path),
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    history = History.load(path)
    assert history.about["problem"]["n_clients"] == 2
    assert history.about["name"] == "w8a by=label"
    assert "kappa" in history.columns and "objective" not in history.columns


def test_run_ends_where_the_default_tolerance_is_met(tmp_path):
    command = ("run", "block_krylov", "w8a", "--surrogate", "-r", "5", "--clients", "3")
    out = tmp_path / "h.h5"
    result = call(*command, "--set", "rounds=200", "--out", str(out))
    assert result.exit_code == 0 and "converged (1 of 1 within the tolerance)" in result.output
    history = History.load(out)
    assert history.about["params"]["tol"] == TOL and history.last("round")[0] < 60
    whole = call(*command, "--set", "tol=0", "--set", "rounds=9", "--out", str(out))
    assert whole.exit_code == 0 and "converged" not in whole.output
    assert History.load(out).last("round")[0] == 9


def test_show(history_file):
    result = call("show", str(history_file))
    assert result.exit_code == 0
    for part in (
        "power_gd on w8a [surrogate data]", "2 repeats", "median", "w8a by=shuffled clients=10",
        "local_steps = 4", "data sha256", "repeats x records = 2 x 5", "final/V  2 x 300 x 3",
        "master = 0", "F = ½‖S − U Vᵀ‖²_F",
    ):  # fmt: skip
        assert part in result.output


def test_show_says_how_sums_over_clients_were_taken(history_file):
    def shown():
        text, said = call("show", str(history_file)), call("show", str(history_file), "--json")
        (line,) = [line for line in text.output.splitlines() if line.startswith("sums ")]
        return " ".join(line.split()[1:]), json.loads(said.output)["sums"]

    assert shown() == ("over the clients in a fixed order", {"order": "fixed"})
    history = History.load(history_file)
    history.about["sums"] = {"order": "any", "ranks": 2}  # as of --engine mpi --order any
    history.save(history_file)
    assert shown() == ("over the clients in any order, by MPI at 2 ranks", history.about["sums"])


def test_show_refuses_what_is_no_history(history_file, tmp_path):
    missing = tmp_path / "missing.h5"
    assert refused("show", str(missing)).startswith(f"Error: {missing} does not exist")
    cut = tmp_path / "cut.h5"
    cut.write_bytes(history_file.read_bytes()[:3000])
    assert "delete it and run again" in refused("show", str(cut))
    with h5py.File(history_file, "r+") as file:
        file["history/objective"][0, 0] += 1
    assert "another program has changed it" in refused("show", str(history_file))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (["--components", "400"], "n_components = 400 is larger than min"),
        (["--set", "local_stepps=4"], "did you mean 'local_steps'"),
        (["--set", "local_steps=many"], "local_steps must be a whole number"),
        (["--set", "momentum=5"], "momentum must be true or false"),
        (["--set", "start=0"], "starting basis"),
        (["--metric", "objektive"], "did you mean 'objective'"),
        (["--partition", "by=lable"], "did you mean 'label'"),
        (["--partition", "by=label", "--clients", "3"], "has no parameter 'clients'"),
        (["--clients", "6000"], "would get no sample"),
    ],
)
def test_run_refuses(changes, says):
    assert says in refused(*RUN, *changes)


def test_run_refuses_names():
    assert "did you mean 'power_gd'" in refused("run", "power_gdd", "w8a", "-r", "3")
    for more in ([], ["--clients", "5"], ["mnist"]):
        assert "did you mean 'w8a'" in refused("run", "power_gd", "w8aa", *more, "-r", "3")
    for more in ("mnist", "a.csv"):
        said = refused("run", "power_gd", "w8a", more, "-r", "3")
        assert "data set w8a stands alone: drop the other names" in said


def test_run_fetches_what_is_not_there(tmp_path, monkeypatch):
    asked = []

    def fetch(name, raw):
        asked.append((name, raw))
        raise DataError("w8a cannot be had: no answer")

    monkeypatch.setattr("fedcore.datasets.fetch", fetch)
    says = refused("run", "power_gd", "w8a", "-r", "3", "--raw", str(tmp_path))
    assert asked == [("w8a", str(tmp_path))] and "no answer" in says
    assert says.endswith("; or try it on a stand-in with --surrogate\n")
    assert call(*RUN).exit_code == 0
    assert len(asked) == 1  # a stand-in needs no file


def test_an_unwritable_file_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    says = refused(*RUN, "--out", str(tmp_path / "file" / "h.h5"))
    assert str(tmp_path / "file") in says


@pytest.mark.parametrize(
    "changes",
    [
        ["--set", "power"],
        ["--set", "n_components=2"],
        ["--partition", "label"],
        ["--partition", "by=even,clients=3", "--clients", "3"],
        ["--seed", "-1"],
        ["--repeats", "0"],
    ],
)
def test_misspelt_commands_have_status_2(changes):
    assert call(*RUN, *changes).exit_code == 2


def made(paper="faps", verdict="reproduced", name="table1", **more):
    plain = dict(
        section="claims", source="Table 1", kind="cell", quantity="iterations", printed="207",
        protocol="as printed", accepted="200 to 220", measured="210", place="1 of 5 below",
        low=200.0, high=220.0, count=5, missing=0, reason=f"because of {paper}",
        counterfactual="310 printed: fails", turned=True, where="counts.tsv, rounds",
    )  # fmt: skip
    return verdicts.Verdict(paper=paper, id=name, verdict=verdict, **(plain | more))


@pytest.fixture
def judged(tmp_path):
    """A folder of results with the verdicts of two papers, not yet merged."""
    folder = tmp_path / "results" / "verdicts"
    longer = made("fedrep", "deviates", "fig3", printed="FedRep " * 20)
    verdict_pages.write([made(), made(name="table2", verdict="undecided")], folder / "faps.tsv")
    verdict_pages.write([longer], folder / "fedrep.tsv")
    return str(folder.parent)


def test_verdicts(judged, tmp_path):
    assert f"there are no verdicts in {judged}" in refused("verdicts", judged)
    assert "there are no verdicts in gone" in refused("verdicts", "gone")
    result = call("verdicts", judged, "--combine")
    assert result.exit_code == 0, result.output
    assert "faps    table1  207" in result.output
    assert "faps: 1 reproduced, 1 undecided (of 2 printed items)" in result.output
    assert "because" not in result.output
    assert max(map(len, result.output.splitlines())) <= 120
    assert "no verdicts in" in refused("verdicts", str(tmp_path), "--combine")


def test_verdicts_of_one_paper_or_of_one_kind(judged):
    call("verdicts", judged, "--combine")
    one = call("verdicts", judged, "--paper", "faps").output
    assert "fedrep" not in one and "table2" in one and "of 2 printed items" in one
    one = call("verdicts", judged, "--verdict", "deviates").output
    assert "faps" not in one and "fig3" in one
    one = call("verdicts", judged, "--paper", "faps", "--verdict", "undecided").output
    assert "table2" in one and "table1" not in one
    words = refused("verdicts", judged, "--paper", "fap")
    assert "no such paper 'fap': did you mean 'faps'?" in words
    assert "did you mean 'deviates'?" in refused("verdicts", judged, "--verdict", "deviate")


@pytest.mark.parametrize("name", ["table1", "faps/table1"])
def test_everything_about_one_verdict(judged, name):
    call("verdicts", judged, "--combine")
    assert call("verdicts", judged, "--show", name).output == (
        "faps/table1: iterations\n"
        "  printed: 207 (Table 1)\n"
        "  measured: 210 [200, 220]\n"
        "  where: counts.tsv, rounds\n"
        "  accepted: 200 to 220\n"
        "  place: 1 of 5 below\n"
        "  runs: 5\n"
        "  protocol: as printed\n"
        "  verdict: reproduced\n"
        "  reason: because of faps\n"
        "  counterfactual: 310 printed: fails\n"
    )
    assert "did you mean 'faps/table" in refused("verdicts", judged, "--show", "faps/table")


@pytest.mark.parametrize("mistake", ["tabel1", "faps/tabel1", "fap/table1"])
def test_an_item_is_found_again_by_its_id_alone(judged, mistake):
    call("verdicts", judged, "--combine")
    message = refused("verdicts", judged, "--show", mistake)
    assert f"there is no item '{mistake}': did you mean 'faps/table1'?" in message
    assert len(message) < 160 and "did you mean" not in refused("verdicts", judged, "--show", "q")


def test_verdicts_that_a_checkout_keeps_are_read_without_a_run(judged):
    found = call("verdicts", f"{judged}/verdicts", "--show", "fig3")
    assert found.exit_code == 0 and "fedrep/fig3: iterations" in found.output


def test_verdicts_that_became_worse_have_status_1(judged, tmp_path, monkeypatch):
    call("verdicts", judged, "--combine")
    verdict_pages.write([made(name="table2"), made(name="old")], tmp_path / "kept" / "faps.tsv")
    for kept in ("kept", "kept/faps.tsv"):
        found = call("verdicts", judged, "--strict", str(tmp_path / kept))
        assert found.exit_code == 1
        assert found.stdout.splitlines() == [
            "faps/table2: undecided, was reproduced", "faps/old: gone, was reproduced",
        ]  # fmt: skip
        assert "verdicts worse than in" in found.stderr
    monkeypatch.chdir(tmp_path)  # where a checkout has its kept verdicts
    verdict_pages.write([made(name="table2")], tmp_path / "docs" / "verdicts" / "faps.tsv")
    found = call("verdicts", judged, "--strict")
    assert found.exit_code == 1 and "faps/table2: undecided, was reproduced" in found.stdout
    same = call("verdicts", judged, "--strict", f"{judged}/verdicts")
    assert same.exit_code == 0 and "3 printed items" in same.output
    empty = tmp_path / "empty"
    empty.mkdir()
    for nothing in (empty, tmp_path / "gone"):
        assert "no verdicts in" in refused("verdicts", judged, "--strict", str(nothing))


def test_verdicts_finds_those_of_the_quick_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "make quickstart or make reproduce" in refused("verdicts")
    verdict_pages.write([made()], tmp_path / "results" / "quick" / "verdicts.tsv")
    quick = call("verdicts")
    assert quick.exit_code == 0 and "1 reproduced" in quick.stdout
    assert "quick run" in quick.stderr
    verdict_pages.write([made()], tmp_path / "results" / "verdicts.tsv")
    assert call("verdicts").stderr == ""


def test_a_program_of_its_own(tmp_path):
    def program(*args):
        return subprocess.run(
            [sys.executable, "-m", "fedcore", *args],
            capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
        )  # fmt: skip

    good = program(*RUN, "--out", str(tmp_path / "h.h5"))
    assert (good.returncode, (tmp_path / "h.h5").is_file()) == (0, True)
    bad = program("run", "power_gdd", "w8a", "-r", "3")
    assert bad.returncode == 1
    assert "did you mean 'power_gd'" in bad.stderr and "Traceback" not in bad.stderr
    assert program("--help").stdout.startswith("Usage: fedcore ")


def test_values_read_like_numbers():
    assert [parsed(text) for text in ("3", "1e-6", ".5", "true", "initial", "[1, 2]", "{")] == [
        3, 1e-6, 0.5, True, "initial", [1, 2], "{",
    ]  # fmt: skip


def test_partition_words():
    assert partition(None, None) == {"by": "shuffled", "clients": 10}
    assert partition("by=label", None) == {"by": "label"}
    assert partition("by=dirichlet,alpha=0.5", 3) == {
        "by": "dirichlet", "alpha": 0.5, "clients": 3,
    }  # fmt: skip


def test_sizes_in_decimal_units():
    assert [as_bytes(size) for size in (0, 999, 999_600, 1.5e9, 2e20)] == [
        "0 B", "999 B", "1 MB", "1.5 GB", "2e+05 PB",
    ]  # fmt: skip


def test_a_private_run_is_repeated_to_the_byte_only_as_a_simulation(tmp_path):
    """By default its noise is the operating system's, and it says so."""
    command = ("run", "analyze_gauss", "w8a", "-r", "2", "--surrogate", "--set", "clip=true")
    for flags, words in (
        (("--simulate",), "simulated noise: no guarantee for these data"),
        ((), "noise from the operating system's entropy, not kept"),
    ):
        files = [tmp_path / f"{bool(flags)}-{i}.h5" for i in range(2)]
        for file in files:
            result = call(*command, *flags, "--out", str(file))
            assert result.exit_code == 0 and words in result.output
        shown = call("show", str(files[0])).output
        assert words in shown
        for text in (result.output, shown):
            assert "at delta = 1e-06, neighbours = add_or_remove_one\n" in text
        assert (files[0].read_bytes() == files[1].read_bytes()) == bool(flags)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("command", [["algorithms"], ["algorithms", "faps"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_cannot_be_written_is_one_sentence(command, unbuffered):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "fedcore", *command],
            stdout=full, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "Error: the output cannot be written: No space left on device\n"


def test_what_fedcore_did_not_write_is_never_to_be_deleted(tmp_path):
    own, text = tmp_path / "own.h5", tmp_path / "w8a"
    with h5py.File(own, "w") as file:
        file["history/iteration"] = [[0, 1]]
    text.write_text("1 1:1\n" * 100)
    for path in (tmp_path, own, text):
        message = refused("show", str(path))
        assert f"{path} is not a whole history file of fedcore (it is " in message
        assert "delete" not in message

"""The command line, on a stand-in that needs neither files nor scikit-learn."""

import json
import os
import shlex
import signal
import subprocess
import sys
import warnings
from functools import partial

import numpy as np
import pytest

import fedcore.algorithms
from commands import call, ran, refused_command
from fedcore import datasets, generators
from fedcore.cli.options import parsed, partition, require_output
from fedcore.deep.models import MODELS
from fedcore.errors import ConfigError, DataError, InputError
from fedcore.history import History
from fedcore.parts.convergence_test import TOL
from processes import python
from refused import refused

RUN = ["run", "power_gd", "w8a", "--surrogate", "--components", "3", "--set", "local_steps=4"]


@pytest.fixture
def history_file(tmp_path):
    path = tmp_path / "history.h5"
    assert call(*RUN, "--repeats", "2", "--out", str(path)).exit_code == 0
    return path


def test_methods_are_listed_by_task_and_names_of_any_kind_are_found():
    tasks = {}
    for line in call("list", "methods").stdout.splitlines():
        if line.endswith(":"):
            mine = tasks.setdefault(line[:-1], [])
        elif line:
            mine.append(line.split()[0])
    learn = {name: fedcore.algorithms.get(name).task for name in fedcore.algorithms.names()}
    assert {frozenset(names) for names in tasks.values()} == {
        frozenset(name for name, task in learn.items() if task is one) for one in learn.values()
    }
    for kind, name in (("metrics", "objective"), ("datasets", "w8a"), ("partitions", "label")):
        (one,) = json.loads(call("list", kind, name, "--json").stdout)
        assert one["name"] == name
    assert "'objective'" in refused_command("list", "metrics", "objectiv")


@pytest.mark.parametrize("words", [("methods",), ("methods", "ssi"), ("datasets", "--raw", "r")])
def test_old_names_of_the_lists_go_on_for_a_release(words):
    old = "algorithms" if words[0] == "methods" else words[0]
    assert call(old, *words[1:], "--json").stdout == call("list", *words, "--json").stdout
    assert f"  {old} " not in call("--help").stdout


def test_the_shell_completes_kinds():
    asked = {
        "_FEDCORE_COMPLETE": "bash_complete",
        "COMP_WORDS": "fedcore list me",
        "COMP_CWORD": "2",
    }
    code = "from fedcore.__main__ import main; main(prog_name='fedcore')"
    done = python("-c", code, env=os.environ | asked)
    assert done.stdout.split() == ["plain,methods", "plain,metrics"]


def test_generators_partitions_and_networks_are_listed():
    assert call("--version").stdout.split()[-1] == fedcore.__version__
    found = {one["name"]: one for one in json.loads(call("list", "generators", "--json").output)}
    assert set(found) >= set(generators.names())
    assert found["low_rank"]["parameters"]["noise"] == "0.0"
    found = {one["name"]: one for one in json.loads(call("list", "partitions", "--json").output)}
    for kind, one in found.items():  # they are what a partition's check asks for
        needed = [p for p, default in one["parameters"].items() if default == "required"]
        if needed:
            with pytest.raises(ConfigError, match=needed[0]):
                datasets.partition.check({"by": kind})
    assert found["dirichlet"]["parameters"]["clients"] == "required"
    described = json.loads(call("list", "methods", "fedrep", "--json").stdout)["networks"]
    assert {n["name"] for n in described} == set(MODELS)


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


def test_help_and_readers_of_data_import_nothing_heavy():
    code = """
import sys, fedcore.cli
print({"pyarrow", "h5py", "yaml", "tqdm"} & set(sys.modules))
import fedcore.datasets, fedcore.user_tables
print({"sklearn", "PIL", "pandas"} & set(sys.modules))
"""
    assert python("-c", code).stdout == "set()\nset()\n"


def test_defaults_of_parameters_are_values_in_json():
    def defaults(name):
        described = json.loads(call("list", "methods", name, "--json").stdout)
        return {p["name"]: (p["required"], p["default"]) for p in described["parameters"]}

    ssi = defaults("ssi")
    assert ssi["tol"] == (False, TOL) and ssi["n_components"] == (True, None)
    noisy = defaults("noisy_power")
    assert noisy["clip"] == (False, False) and noisy["calibration"] == (False, "tight")
    assert noisy["delta"] == (False, 1e-6) and noisy["rounds"] == (False, 10)


def test_a_command_that_a_fault_ends_says_which_one_and_where():
    code = """
import os, signal
from fedcore.__main__ import main
@main.command()
def reads():
    os.kill(os.getpid(), signal.SIGBUS)
main(["reads"])
"""
    done = python("-c", code, status=-signal.SIGBUS)
    assert "Bus error" in done.stderr and "in reads" in done.stderr


ENDED = """
import os, signal
from fedcore.__main__ import main
from fedcore.experiments import build
from fedcore.files import atomic
signal.signal(signal.{name}, signal.SIG_DFL)  # also under nohup

def make(output, *args, **options):
    with atomic.replace(output) as temporary:
        temporary.write_text("half")
        os.kill(os.getpid(), signal.{name})

build.make = make
main(["job", "problem", "p", "{{}}", "p.h5", "--seed", "0"])
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGXCPU", "SIGUSR1", "SIGUSR2"])
def test_a_job_that_a_signal_ends_says_so_and_leaves_nothing(tmp_path, name):
    done = python("-c", ENDED.format(name=name), status=1, cwd=tmp_path)
    assert name in done.stderr and not list(tmp_path.iterdir())


def test_a_job_too_large_for_the_machine_ends_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("fedcore.experiments.build.make", lambda *_, **__: np.zeros(2**50))
    job = ("job", "problem", "p", "{}", tmp_path / "p.h5", "--seed", 0)
    assert "too large for this machine" in refused_command(*job)


def test_fetch(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "fedcore.datasets.fetch",
        lambda name, raw, mirror=None: asked.append((name, raw, mirror)) or [f"{raw}/{name}/file"],
    )
    result = call("fetch", "w8a", "mnist", "--raw", "r", "--mirror", "m")
    assert asked == [("w8a", "r", "m"), ("mnist", "r", "m")]
    assert result.output == "r/w8a/file\nr/mnist/file\n"


def rows_of(text):
    return [line.split() for line in text.splitlines() if line.strip()]


def test_run_and_show_print_the_best_value(tmp_path):
    path = str(tmp_path / "h.h5")
    for repeats in ("1", "3"):
        printed = call(
            "run", "block_krylov", "w8a", "--surrogate", "-r", "3", "--set", "tol=1e-8",
            "--repeats", repeats, "--out", path,
        ).stdout  # fmt: skip
        sigma = History.load(path).reference["singular_values"]
        best = 0.5 * np.sum(sigma[3:] ** 2)
        for text in (printed, call("show", path).stdout):
            rows = rows_of(text)
            at = next(i for i, row in enumerate(rows) if row[0] == "objective")
            assert rows[at + 1][:2] == ["at", "best"]
            # Four digits are printed.
            assert float(rows[at][1]) == pytest.approx(best, rel=1e-3)
            assert [float(v) for v in rows[at + 1][2 : 2 + int(repeats)]] == pytest.approx(
                [best] * int(repeats), rel=1e-3
            )
            assert f"converged ({repeats} of {repeats} within" in text


def test_run_and_show_say_that_a_run_has_diverged(tmp_path):
    path = str(tmp_path / "run.h5")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        printed = call("run", "power_gd", "w8a", "--surrogate", "-r", "3", "--set", "power=60",
                       "--set", "local_steps=1", "--out", path).stdout  # fmt: skip
    for text in (printed, call("show", path).stdout):
        assert "DIVERGED: not finite at the end (1 of 1)" in text
    assert "DIVERGED" not in call(*RUN).stdout


def test_partition_and_metric_and_reference(tmp_path):
    path = tmp_path / "h.h5"
    ran(
        "run", "yd2021", "w8a", "--surrogate", "-r", "2", "--partition", "by=label", "--metric",
        "kappa", "--set", "sigma_max=reference", "--set", "sigma_r=reference", "--set", "rounds=1",
        "--out", str(path),
    )  # fmt: skip
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


def test_show_gives_what_the_history_has(history_file):
    history = History.load(history_file)
    found = json.loads(call("show", str(history_file), "--json").output)
    assert found["problem"]["sha256"] == history.about["problem"]["sha256"]
    assert found["metrics"]["objective"]["median"] == np.median(history.last("objective"))


def test_run_fetches_what_is_not_there(tmp_path, monkeypatch):
    asked = []

    def fetch(name, raw):
        asked.append((name, raw))
        raise DataError("w8a cannot be had: no answer")

    monkeypatch.setattr("fedcore.datasets.fetch", fetch)
    says = refused_command("run", "power_gd", "w8a", "-r", "3", "--raw", str(tmp_path))
    assert asked == [("w8a", str(tmp_path))] and "no answer" in says and "--surrogate" in says


def test_a_program_of_its_own(tmp_path):
    program = partial(python, "-m", "fedcore", env=os.environ | {"OMP_NUM_THREADS": "1"})
    program(*RUN, "--out", tmp_path / "h.h5")
    assert (tmp_path / "h.h5").is_file()
    bad = program("run", "power_gdd", "w8a", "-r", "3", status=1)
    assert "did you mean 'power_gd'" in bad.stderr and "Traceback" not in bad.stderr
    assert program("--help").stdout.startswith("Usage: fedcore ")


def test_values_read_like_numbers():
    assert [parsed(text) for text in ("3", "1e-6", ".5", "true", "initial", "[1, 2]", "{")] == [
        3, 1e-6, 0.5, True, "initial", [1, 2], "{",
    ]  # fmt: skip


def test_a_folder_may_have_a_name_that_no_figure_has(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    require_output("--out", "runs.svg", "folder")
    refused(lambda: require_output("--plot", "runs.svg", "figure"), InputError, "leave out .svg")


def test_partition_words():
    assert partition(None, None) == {"by": "shuffled", "clients": 10}
    assert partition("by=label", None) == {"by": "label"}
    assert partition("by=dirichlet,alpha=0.5", 3) == {
        "by": "dirichlet", "alpha": 0.5, "clients": 3,
    }  # fmt: skip
    for text in ("by=dirichlet,alpha=0.5", "by=even"):  # as --help has them
        assert partition(text, None)["clients"] == 10
    assert partition("by=[even]", None) == {"by": ["even"]}  # refused as unknown


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
@pytest.mark.parametrize(
    ("command", "unbuffered"),
    [(["list", "methods"], ""), (["list", "methods", "faps"], "1"), (["--help"], "")],
)
def test_output_that_cannot_be_written_is_one_sentence(command, unbuffered):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "fedcore", *command],
            stdout=full, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )  # fmt: skip
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "No space left on device" in done.stderr


def test_a_working_folder_that_is_gone_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    assert "working folder" in refused_command("pca", "a.csv")

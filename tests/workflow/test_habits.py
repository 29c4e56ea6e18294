"""What a user of Snakemake tries first works here, too: each habit has a test."""

from __future__ import annotations

import http.server
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from refused import is_a_line
from workflow.conftest import JOB

CELL = "results/tiny/histories/tiny/second/power_gd/other-plain.h5"
PLAN = "results/tiny/plans/tiny.json"


def snakemake(checkout, folder, *args, path=None, **environment):
    """Run Snakemake in a folder, without the checkout on Python's path."""
    inherited = {k: v for k, v in checkout.environment.items() if k != "PYTHONPATH"} | environment
    if path:
        inherited["PATH"] = f"{path}:{inherited['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "1", *map(str, args)],
        cwd=folder, env=inherited, text=True, timeout=1200,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


def same(checkout, folder, *names):
    for name in names:
        assert (folder / name).read_bytes() == (checkout.root / name).read_bytes(), name


@pytest.fixture
def raw(first_run, tmp_path):
    """An empty folder elsewhere, which has the data that nobody can download."""
    folder = tmp_path / "elsewhere"
    shutil.copytree(first_run[0].root / "data/raw", folder / "data/raw")
    return folder


def test_a_snakefile_from_another_folder(first_run, raw):
    """As far as a history; the module with a prefix below makes everything."""
    root = first_run[0].root
    options = ["-s", root / "Snakefile", "--configfile", root / "tiny.yaml"]
    snakemake(first_run[0], raw, CELL, *options)
    same(first_run[0], raw, CELL)


@pytest.mark.parametrize("given", ["own", "command line", "neither"])
def test_the_configuration_of_the_working_folder_counts(pristine, tmp_path, given):
    """Without one the checkout's counts; one line says which files do."""
    mine, theirs = tmp_path / "config/config.yaml", pristine.root / "config/config.yaml"
    options, used = (
        ["-s", pristine.root / "Snakefile", "--directory", tmp_path, "-n"],
        [],
    )
    if given == "own":
        mine.parent.mkdir()
        shutil.copyfile(pristine.root / "tiny.yaml", mine)
        used = ["config/config.yaml"]
    else:
        used = [os.path.relpath(theirs, tmp_path)]
    if given == "command line":
        options += ["--configfile", pristine.root / "tiny.yaml"]
        used += [os.path.relpath(pristine.root / "tiny.yaml", tmp_path)]
    if given == "neither":
        options += ["--config", "papers=[tiny]"]
    said = snakemake(pristine, tmp_path.parent, *options)
    assert f"\nConfiguration: {', changed by '.join(used)}\n" in said
    assert ("results/tiny/" in said) is (given != "neither")


@pytest.mark.parametrize("start", [".", "workflow"])
def test_the_snakefile_where_the_catalogue_looks_for_it(pristine, start):
    options = ["-s", "workflow/Snakefile", "--configfile", pristine.root / "tiny.yaml", "-n"]
    if start == "workflow":  # the file is named from the folder it lies in
        options = ["-s", "Snakefile", "--directory", "..", *options[2:]]
    assert "rule run_power_gd:" in snakemake(pristine, pristine.root / start, *options)


# What `snakedeploy deploy-workflow` writes, with a path in the place of an address.
MODULE = """
configfile: "config/config.yaml"
module fedcore:
    snakefile: "{snakefile}"
    config: config
use rule * from fedcore
"""


def test_a_workflow_that_uses_this_one_as_a_module(first_run, raw):
    checkout, _ = first_run
    (raw / "config").mkdir()
    shutil.copyfile(checkout.root / "tiny.yaml", raw / "config/config.yaml")
    (raw / "workflow").mkdir()
    mine, theirs = (folder / "workflow/Snakefile" for folder in (raw, checkout.root))
    mine.write_text(MODULE.format(snakefile=theirs))
    options = ["-s", mine, "--directory", raw, "--", PLAN, CELL]
    snakemake(checkout, raw.parent, "-n", *options)
    assert not (raw / ".snakemake/fedcore-plans").exists()  # what the start of a run writes
    snakemake(checkout, raw.parent, *options)
    same(checkout, raw, PLAN, CELL)


TWO = """
module {name}:
    snakefile: "{snakefile}"
    config: config | {{"seed": {seed}, "paths": {{"clients": "{name}", "results": "{name}"}}}}
use rule * from {name} as {name}_*
"""


def test_two_modules_with_other_settings_run_in_one_workflow(first_run, raw):
    checkout, _ = first_run
    shutil.copyfile(checkout.root / "tiny.yaml", raw / "tiny.yaml")
    modules = (
        TWO.format(name=name, seed=seed, snakefile=checkout.root / "Snakefile")
        for seed, name in enumerate(("one", "two"))
    )
    (raw / "Snakefile").write_text('configfile: "tiny.yaml"\n' + "".join(modules))
    plans = [raw / name / "plans/tiny.json" for name in ("one", "two")]
    snakemake(checkout, raw, "one/plans/tiny.json", "two/plans/tiny.json")
    assert [json.loads(plan.read_text())["run"]["seed"] for plan in plans] == [0, 1]


def test_a_module_from_a_git_source_says_that_a_clone_is_needed(fresh, tmp_path):
    """With a repository on this disk, which Snakemake treats as those of servers."""
    for words in ("init", "add Snakefile workflow", "-c user.name=a -c user.email=b commit -m c"):
        subprocess.run(["git", *words.split()], cwd=fresh.root, check=True, capture_output=True)
    (tmp_path / "config").mkdir()
    shutil.copyfile(fresh.root / "tiny.yaml", tmp_path / "config/config.yaml")
    (tmp_path / "Snakefile").write_text(
        MODULE.format(snakefile=f"git+file://{fresh.root}/Snakefile@HEAD")
    )
    elsewhere = replace(fresh, root=tmp_path, beside=(fresh.root,))
    run = elsewhere.python("-m", "snakemake", "-n", stderr=subprocess.STDOUT)
    (said,) = [line for line in run.stdout.splitlines() if "clone the repository" in line]
    is_a_line(said)
    assert run.returncode == 1 and "Traceback" not in run.stdout


# A workflow with a key and a rule of its own, which keeps what fedcore makes in a folder.
OTHER = """
configfile: "config/config.yaml"
rule mine:
    output: "mine.txt"
    shell: "touch {{output}}"
module fedcore:
    snakefile: "{snakefile}"
    config: config["fedcore"]
    prefix: "sub"
use rule * from fedcore as their_*
"""


def test_a_module_with_a_prefix_beside_rules_of_ones_own(first_run, raw):
    checkout, _ = first_run
    (raw / "config").mkdir()
    given = textwrap.indent((checkout.root / "tiny.yaml").read_text(), "  ")
    given += f"    raw: {raw / 'data/raw'}\n"
    (raw / "config/config.yaml").write_text(f"own_key: 1\nfedcore:\n{given}")
    (raw / "Snakefile").write_text(OTHER.format(snakefile=checkout.root / "Snakefile"))
    snakemake(checkout, raw)
    assert (raw / "mine.txt").is_file() and not (raw / "sub/results").exists()
    snakemake(checkout, raw, "their_all")
    # Plans say where raw data are, and notebooks and pages where the plan lies.
    kinds = ("/histories/", "/tables/", "/figures/", "/clients/", "/verdicts/", "/verdicts.")
    same(
        checkout,
        raw / "sub",
        *(name for name in checkout.payload() if any(kind in name for kind in kinds)),
    )
    assert any((raw / "sub/results/tiny/seconds").rglob("*.tsv")) and not (raw / "results").exists()


def test_the_reason_of_a_rerun_names_the_module_that_has_changed(done):
    done.append("fedcore/algorithms/power_gd.py", "\nEDITED = 1\n")
    cells = [job for job in JOB.finditer(done.run("-n").text) if job["rule"].startswith("run_")]
    assert {job["rule"] for job in cells} == {"run_power_gd"}
    assert all("fedcore.algorithms.power_gd" in job["reason"] for job in cells)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("results/tiny/histories/tiny/second/power_gd/othre-plain.h5", "other-plain"),
        ("data/clients/tiny/tiny/othre.h5", "tiny/other"),
        ("results/tiny/histories/tiny/first/power_iteration/faces-default.h5", "celeba"),
    ],
)
def test_a_file_that_is_not_made_is_refused_with_the_reason(fresh, target, reason):
    run = fresh.snakemake("-n", target)
    assert run.status != 0 and reason in run.text and "KeyError" not in run.text


def test_generated_unit_tests_pass(done):
    rules = ("problem", "run_power_gd", "verdicts")
    done.run("--generate-unit-tests", ".tests/unit", "--forceall")
    tests = [f".tests/unit/test_{rule}.py" for rule in rules]
    ran = done.python("-m", "pytest", "-q", "-o", "addopts=", *tests)
    assert ran.returncode == 0, ran.stdout
    assert f"{len(rules)} passed" in ran.stdout


def test_each_command_gives_the_same_bytes_by_hand(first_run, fresh):
    """In the order of the jobs, each as it is printed; Snakemake itself runs none."""
    fresh.run(PLAN)  # the start of a run writes what a plan copies
    dry = fresh.run("-n", "-p", "--forceall")
    lines = [line.removeprefix("Shell command: ") for line in dry.text.splitlines()]
    job = re.compile(r"\s*(\w+=\S* )*(python -m fedcore|papermill) ")
    printed = [line.strip() for line in lines if job.match(line)]
    waiting = sorted(set(printed), key=order)
    assert len(waiting) == len(printed) > 12
    for command in waiting:
        for log in re.findall(r"2> (\S+)", command):
            (fresh.root / shlex.split(log)[0]).parent.mkdir(parents=True, exist_ok=True)
        (fresh.root / "results/tiny/notebooks").mkdir(exist_ok=True)
        ran = subprocess.run(
            ["bash", "-c", command], cwd=fresh.root,
            env=fresh.environment | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            capture_output=True, text=True,
        )  # fmt: skip
        assert ran.returncode == 0, command
    assert fresh.payload() == first_run[0].payload()


def order(command):
    steps = ["fetch", "job plan", "job problem", "job cell", "job tables", "papermill"]
    steps += ["job verdicts", "job summary", "job report"]
    return next(place for place, step in enumerate(steps) if step in command)


CONDA = """#!{python}
import json, os, shutil, sys
from pathlib import Path

words = sys.argv[1:]
if words[:1] == ["--version"]:
    print("conda 25.1.0")
elif words[:1] == ["info"]:
    print(json.dumps({{"conda_prefix": {prefix!r}, "platform": "linux-64"}}))
elif words[:1] == ["config"]:
    print(json.dumps({{"get": {{"channel_priority": "strict"}}}}))
elif words[:1] == ["clean"]:
    pass
elif words[:2] == ["env", "create"]:
    file, made = (Path(words[words.index(name) + 1]) for name in ("--file", "--prefix"))
    (made / "bin").mkdir(parents=True)
    shutil.copyfile(file, made / "environment.yaml")
    for name in ("python", "papermill"):
        program = made / "bin" / name
        module = "-m papermill " if name == "papermill" else ""
        program.write_text(
            f'#!/bin/sh\\necho "$CONDA_PREFIX" "$@" >> {ran}\\n'
            f'exec {python} {{module}}"$@"\\n'
        )
        program.chmod(0o755)
else:
    sys.exit(f"unexpected: {{words}}")
"""


JOBS = ("problem", "cell", "tables", "verdicts", "summary", "report")
STEPS = ["-m fedcore fetch ", "notebooks/tiny.ipynb", *(f"-m fedcore job {job} " for job in JOBS)]


def programs(folder, **texts):
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


def test_each_job_runs_in_the_environment_of_its_rule(first_run, fresh, tmp_path):
    """With a stand-in for conda, which there is none of here, and on two cores: in another order.

    It writes down which file each environment is made from. In place of packages it puts a `python`
    and a `papermill` there, which write down that they were called inside the environment, and then
    call those of this test.
    """
    ran = tmp_path / "ran"
    conda = CONDA.format(python=sys.executable, prefix=str(tmp_path / "base"), ran=ran)
    programs(tmp_path / "base/bin", activate='export CONDA_PREFIX="$1" PATH="$1/bin:$PATH"\n')
    path = programs(tmp_path / "bin", conda=conda)
    options = ["--configfile", "tiny.yaml", "--sdm", "conda", "--cores", "2"]
    snakemake(fresh, fresh.root, *options, path=path)
    assert fresh.payload() == first_run[0].payload()
    made = {
        file.parent: file for file in (fresh.root / ".snakemake/conda").glob("*/environment.yaml")
    }
    (environment,) = made.values()
    assert environment.read_bytes() == (fresh.root / "workflow/envs/fedcore.yaml").read_bytes()
    calls = ran.read_text().splitlines()
    assert {Path(line.split()[0]).name for line in calls} == {environment.parent.name}
    assert [step for step in STEPS if step not in ran.read_text()] == []


APPTAINER = """#!{python}
import os, sys

words = sys.argv[1:]
if "--version" in words:
    print("apptainer version 1.3.0")
    sys.exit()
image = next(i for i, word in enumerate(words) if word.endswith(".sif"))
with open({ran!r}, "a") as file:
    print(words[image], words[-1], file=file)
os.execvp(words[image + 1], words[image + 1 :])
"""


def test_jobs_run_in_the_container(first_run, fresh, tmp_path):
    """With a stand-in for apptainer, which writes down the image and the command, and runs it.

    One container is named for all rules: jobs as far as a history show it.
    """
    history = "results/tiny/histories/tiny/first/wk2023/little-default.h5"
    ran = tmp_path / "ran"
    path = programs(
        tmp_path / "bin", apptainer=APPTAINER.format(python=sys.executable, ran=str(ran))
    )
    (fresh.root / "fedcore.sif").touch()
    options = ["--configfile", "tiny.yaml", "--sdm", "apptainer", "--", history]
    snakemake(fresh, fresh.root, *options, path=path)
    same(first_run[0], fresh.root, history)
    calls = [line for line in ran.read_text().splitlines() if "-m fedcore" in line]
    assert all("fedcore.sif" in line for line in calls)
    for step in ("fetch", "job problem", "job cell"):
        assert any(f"-m fedcore {step} " in line for line in calls), step


def test_a_report_of_snakemake(first_run, done):
    done.run("--report", "report.html")
    page = (done.root / "report.html").read_text(encoding="utf-8")
    assert "ends.png" in page and "tiny.md" in page and "Drawn by" in page  # of a caption


@pytest.fixture
def asked():
    """A server that answers, and counts by its address how often it was asked."""
    found = Counter()

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self):
            found[self.headers["Host"]] += 1
            self.send_response(404)
            self.end_headers()

        def log_message(self, *_):
            """Print nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        found[f"127.0.0.1:{server.server_port}"] = 0
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield found
        server.shutdown()
        thread.join()


def test_reading_the_rules_writes_nothing_and_asks_no_server(fresh, asked):
    """The start of a run asks, once a day."""
    (server,) = asked
    for name in ("images.gz", "labels.gz"):
        urls = f"{{urls: [http://{server}/{name}], bytes: 9, name: {name}, "
        fresh.edit("config/datasets.yaml", f"{{name: {name}, ", urls)
    shutil.rmtree(fresh.root / "data/raw")

    def files():
        found = [path.relative_to(fresh.root) for path in fresh.root.rglob("*") if path.is_file()]
        names = {path.as_posix() for path in found if "__pycache__" not in path.parts}
        # Snakemake's own cache and logs may come and go.
        return {name for name in names if not name.startswith(".snakemake/")}

    before = files()
    for option in ("-n", "--lint", "--dag"):
        fresh.run(option)
    assert files() == before and asked[server] == 0
    for _ in range(2):
        fresh.run(PLAN)
        (fresh.root / PLAN).unlink()
        assert asked[server] == 1


def test_memory_and_time_of_one_algorithm_are_set_as_snakemake_documents_it(fresh):
    dry = fresh.run("-n", CELL, "--set-resources", "run_power_gd:mem_mb=8765")
    asked = dict(
        re.findall(r"^rule (\w+):\n(?:    .*\n)*?    resources: .*?mem_mb=(\d+)", dry.text, re.M)
    )
    assert asked["run_power_gd"] == "8765" != asked["problem"]


def test_numbers_in_the_overrides_of_the_command_line_count(fresh):
    """Snakemake itself takes nested values of --config for texts."""
    changes = "overrides={tiny: {cells: {'first/*': {repeats: 3}, 'second/*': false}}}"
    dry = fresh.run("-n", "--config", changes)
    assert dry.status == 0 and "histories/tiny/first/" in dry.text
    assert "histories/tiny/second/" not in dry.text


def test_repeats_of_an_unknown_paper_are_told_and_stop_nothing(fresh):
    """A file of repeats may name a paper elsewhere."""
    dry = fresh.run("-n", "-q", "--config", "repeats={tyni: {a: 3}, faps: {a: 3}}")
    assert "repeats.tyni is not used" in dry.text and "repeats.faps" not in dry.text


def test_what_was_never_measured_sets_no_runtime(fresh):
    """The profile's default counts for it, also as an expression; without one it asks for none."""
    notes = json.loads((fresh.root / "kept/run.json").read_text())
    notes["tiny"] = {"times": {"first": {"cells": 1, "seconds": 600.0, "MB": 1}}}
    (fresh.root / "kept/run.json").write_text(json.dumps(notes))
    rule = re.compile(
        r"^rule .*\n(?:    .*\n)*?    output: (\S+)\n(?:    .*\n)*?    resources: (.*)", re.M
    )
    for options, others in (
        ([], set()),
        (["--default-resources", "runtime=36 + attempt"], {"37"}),
    ):
        measured, unmeasured = set(), set()
        for output, resources in rule.findall(fresh.run("-n", *options).text):
            into = measured if "/histories/tiny/first/" in output else unmeasured
            into |= {*re.findall(r"runtime=(\d+)", resources)}
        assert (measured, unmeasured) == ({"42"}, others)


def test_what_one_algorithm_asks_for_follows_from_its_data_and_grows_with_each_attempt(first_run):
    """The files say enough: no job takes more than it asks for in a run of everything."""
    checkout, run = first_run
    assert run.status == 0, run.text
    asked = {}
    for block in re.split(r"^\[.*?\] ?", run.text, flags=re.MULTILINE):
        output = re.search(r"^    output: results/tiny/histories/(\S+)\.h5", block, re.MULTILINE)
        memory = re.search(r"^    resources: .*\bmem_mb=(\d+)", block, re.MULTILINE)
        if output and memory:
            asked[output[1]] = int(memory[1])
    assert len(asked) == 6
    for cell, memory in asked.items():
        row = (checkout.root / f"results/tiny/benchmarks/{cell}.tsv").read_text().splitlines()
        taken = dict(zip(*(line.split("\t") for line in row), strict=True))["max_rss"]
        assert float(taken.replace("-", "0").replace("NA", "0")) < memory

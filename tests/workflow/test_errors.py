"""A user's error ends in one sentence with the place, the mistake and the nearest correct name."""

from __future__ import annotations

import gzip
import re

import numpy as np
import pytest

PAPER = "config/papers/tiny.yaml"
CLAIMS = "config/claims/tiny.yaml"


def sentence(text):
    """What Snakemake prints between the place of the error and the traceback through the rules."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if re.match(r"\w+Error in file", line))
    end = next(i for i, line in enumerate(lines[start:], start) if line.startswith("  File "))
    assert all(line.startswith("  File ") for line in lines[end:])
    return " ".join(lines[start + 1 : end])


BRACES = "braces in a path"
CONFIGURATION = {
    "key of the configuration": (
        "tiny.yaml", "paths:", "pahts:",
        "the configuration, top level: unknown key 'pahts': did you mean 'paths'? "
        "known: iterates, leave_out, overrides, papers, paths, quick, seed, surrogates",
    ),
    "key said twice in the configuration": (
        "tiny.yaml", "  clients: data", "  results: elsewhere\n  clients: data",
        "tiny.yaml, line 8: the key 'results' was already given in line 6",
    ),
    "key said twice in a paper": (
        PAPER, "    repeats: 3", "    repeats: 2\n    repeats: 3",
        f"{PAPER}, line 46: the key 'repeats' was already given in line 45",
    ),
    BRACES: (
        "tiny.yaml", "results: results/tiny", "results: results/{}",
        "the configuration, paths.results: 'results/{}' does not match '^[^{}]+$'",
    ),
    "parameter of a generator": (
        PAPER, "n_features: 5", "n_feature: 5",
        f"{PAPER}, problem other: generator low_rank has no parameter 'n_feature': did you mean "
        "'n_features'? known: n_clients, n_features, noise, rank, samples, singular_values",
    ),
    "value of a generator's parameter": (
        PAPER, "rank: 3", "rank: five",
        f"{PAPER}, problem other: rank must be a whole number of at least 1, got 'five'",
    ),
    "paper": (
        "tiny.yaml", "[tiny]", "[tinny]",
        "papers: unknown paper 'tinny': did you mean 'tiny'? known: {papers}",
    ),
    "key of an experiment": (
        PAPER, "repeats: 3", "repeat: 3",
        f"{PAPER}, experiments.second: unknown key 'repeat': did you mean 'repeats'? known: "
        "audit, because, client_iterates, iterates, measured, metrics, newcomers, params, "
        "problems, repeats, reproduces, runs, stop, together, twin",
    ),
    "key of an item": (
        CLAIMS, "spread: false", "spraed: false",
        f"{CLAIMS}, table1-power-easy: unknown key 'spraed': did you mean 'spread'? known: "
        "because, counterfactual, departures, id, kind, needs, printed, quantity, readings, "
        "select, source, spread, test, unchecked",
    ),
    "table of an item": (
        CLAIMS, "{problem: faces}", "{problem: faces}, each: problem, tabel: ends",
        f"{CLAIMS}, table1-power-faces.select: unknown key 'tabel': did you mean 'table'? known: "
        "absent, column, each, table, where",
    ),
    "problem of an item": (
        CLAIMS, "needs: [faces]", "needs: [face]",
        f"{CLAIMS}, table1-power-faces: needs the unknown problem or experiment 'face': did you "
        "mean 'faces'? known: easy, faces, first, little, other, second",
    ),
    "algorithm": (
        PAPER, "algorithm: wk2023", "algorithm: wk2032",
        f"{PAPER}, experiment first: unknown algorithm 'wk2032': {{algorithms}}",
    ),
    "metric": (
        PAPER, "metrics: [objective]", "metrics: [objectiv]",
        f"{PAPER}, experiment first: unknown metric 'objectiv': {{metrics}}",
    ),
    "parameter": (
        PAPER, "{local_steps: 4}", "{localsteps: 4}",
        f"{PAPER}, experiment second: power_gd has no parameter 'localsteps': "
        "did you mean 'local_steps'? known: local_steps, momentum, n_components, orthonormalise, "
        "power, samples, select, start",
    ),
    "generator": (
        PAPER, "low_rank\n    params: {n_clients: 2", "lowrank\n    params: {n_clients: 2",
        f"{PAPER}, problem other: unknown generator 'lowrank': did you mean 'low_rank'? "
        "known: {generators}",
    ),
    "parameter in a label": (
        PAPER, "label: other", "label: other of {n_clents}",
        f"{PAPER}, problem other: the label 'other of {{n_clents}}' cannot be filled in "
        "(KeyError('n_clents')); there are n_clients, samples, n_features, rank",
    ),
    "data set": (
        PAPER, "dataset: celeba", "dataset: celebs",
        f"{PAPER}, problem faces: unknown data set 'celebs': did you mean 'celeba'? "
        "known: {datasets}",
    ),
}  # fmt: skip


BROKEN = {
    "report": ("fedcore/reports/papers/tiny.py", b"TABLES = {\n", "line 1: '{' was never closed"),
    "notebook": ("notebooks/tiny.ipynb", b"[]", " is not a notebook (TypeError: "),
    "configuration": ("config/config.yaml", b"# caf\xe9\n", " is not valid YAML: 'utf-8' codec "),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_file_is_named(fresh, broken):
    path, content, reason = BROKEN[broken]
    (fresh.root / path).write_bytes(content)
    run = fresh.snakemake("-n")
    assert run.status == 1
    assert path in sentence(run.text) and reason in sentence(run.text)
    assert "Traceback" not in run.text


def test_a_figure_that_the_notebook_does_not_save(done):
    done.edit(PAPER, "figures:\n", "figures:\n  lost: Nobody draws it\n")
    run = done.snakemake()
    assert run.status == 1 and "Traceback" not in run.text
    assert "notebook_tiny" in run.text and "results/tiny/figures/tiny/lost.png" in run.text


@pytest.mark.parametrize("wrong", [case for case in CONFIGURATION if case != BRACES])
def test_wrong_configuration(fresh, wrong):
    refused(fresh, wrong)


def test_braces_in_a_path(fresh):
    """Paths become patterns of Snakemake, where braces stand for parts of a name."""
    refused(fresh, BRACES)


def refused(fresh, wrong):
    from fedcore import algorithms, datasets, generators, metrics
    from fedcore.errors import nearest

    path, old, new, message = CONFIGURATION[wrong]
    fresh.edit(path, old, new)
    families = map(metrics.REGISTRY.module, metrics.REGISTRY.names())
    known = {
        "papers": ["arena", *(file.stem for file in (fresh.root / "config/papers").iterdir())],
        "generators": generators.names(),
        "datasets": {*datasets.names(), "little"},
    }
    every = [metric.name for family in families for metric in family.METRICS]
    alike = {
        "algorithms": nearest("wk2032", algorithms.names(), "`fedcore algorithms` lists all"),
        "metrics": nearest("objectiv", every, "`fedcore metrics` lists all"),
    }
    run = fresh.snakemake("-n")
    assert run.status == 1
    said = {kind: ", ".join(sorted(names)) for kind, names in known.items()} | alike
    for kind, names in said.items():
        message = message.replace(f"{{{kind}}}", names)
    assert sentence(run.text).replace(f"{fresh.root}/", "") == message
    assert "Traceback" not in run.text


def failed(run, checkout, log):
    """The one sentence of a job that failed, the same on the terminal and in the job's log."""
    assert run.status == 1
    assert "Traceback" not in run.text
    said = {line for line in run.text.splitlines() if line.startswith("Error: ")}
    assert len(said) == 1
    message = said.pop()
    written = (checkout.root / "results/tiny/logs" / log).read_text()
    assert written.splitlines()[-1] == message
    return message


def target(cell):
    return f"results/tiny/histories/tiny/{cell}.h5"


def test_rank_above_the_data(fresh):
    defaults = "rank: 3}\n    defaults: {n_components: %d}"
    fresh.edit(PAPER, defaults % 2, defaults % 6)
    run = fresh.snakemake(target("second/power_gd/other-plain"))
    message = failed(run, fresh, "run/tiny/second/power_gd/other-plain.log")
    assert message.startswith("Error: n_components = 6 is larger than")
    assert not (fresh.root / target("second/power_gd/other-plain")).exists()


def test_raw_file_with_another_checksum(fresh):
    path = fresh.root / "data/raw/little/images.gz"
    path.write_bytes(path.read_bytes() + b"\0")
    run = fresh.snakemake("data/clients/tiny/tiny/little.h5")
    message = failed(run, fresh, "fetch/little.log")
    assert message.startswith("Error: data/raw/little/images.gz has sha256 ")
    assert " where the registry expects " in message
    assert message.endswith(": move it away and fetch again, or put the right file in its place")
    assert not (fresh.root / "data/raw/little/fetched.json").exists()


def test_raw_file_cut_off(fresh, add_data_set):
    """A file that was cut off before its checksum was taken."""
    whole = gzip.compress(np.random.default_rng(1).bytes(4000))
    add_data_set(fresh, "torn", {"images.gz": whole[:2000], "labels.gz": whole})
    fresh.edit(PAPER, "dataset: little", "dataset: torn")
    run = fresh.snakemake("data/clients/tiny/tiny/little.h5")
    assert failed(run, fresh, "problem/tiny-little.log") == (
        "Error: data/raw/torn/images.gz cannot be read (Compressed file ended before the "
        "end-of-stream marker was reached): move it away and fetch again"
    )


@pytest.fixture
def corrupt(done):
    """Copy with one history cut off, and that file's path."""
    name = target("first/wk2023/easy-default")
    path = done.root / name
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    return done, name


def test_corrupt_history_is_not_shown(corrupt):
    checkout, name = corrupt
    shown = checkout.python("-m", "fedcore", "show", name)
    assert shown.returncode == 1
    assert shown.stdout == ""
    assert shown.stderr.startswith(f"Error: {name} is not a whole history file (")
    assert shown.stderr.endswith("); delete it and run again\n")
    assert shown.stderr.count("\n") == 1


def test_corrupt_history_stops_the_tables(corrupt):
    checkout, name = corrupt
    run = checkout.snakemake()  # the file is newer than the tables
    message = failed(run, checkout, "tables/tiny.log")
    assert message.startswith(f"Error: {name} is not a whole history file (")
    assert not (checkout.root / "results/tiny/tables/tiny/ends.tsv").exists()


def test_data_that_cannot_be_had(first_run):
    """One warning; its cells are left out, all others run, and its printed item is 'not run'."""
    checkout, run = first_run
    warnings = [line for line in run.text.splitlines() if line.startswith("Not run: ")]
    assert len(warnings) == 1
    (warning,) = warnings
    for part in (
        "tiny/faces. data set 'celeba' needs 'img_align_celeba.zip' (sha256 46fb89443c578308acf3",
        "and 'identity_CelebA.txt' (sha256 c6143857c3e2630ac2da9f782e9c1232e5e59be993a9d44e8a791",
        " in data/raw/celeba or in $FEDCORE_MIRROR/celeba: agree to the terms at https://",
    ):
        assert part in warning
    assert "faces" not in run.text.replace(warning, "")
    assert run.status == 0
    verdict = (checkout.root / "results/tiny/verdicts/tiny.md").read_text()
    assert "not run" in verdict
    assert "img_align_celeba.zip" in verdict

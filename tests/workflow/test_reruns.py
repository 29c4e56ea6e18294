"""An edit runs exactly those jobs again that depend on it."""

from __future__ import annotations

import base64
import json
import shutil

import pytest

from fedcore.history import History

ITERATION = {"first/power_iteration/easy-default", "first/power_iteration/little-default"}
WK2023 = {"first/wk2023/easy-default", "first/wk2023/little-default"}
DESCENT = {"second/power_gd/other-plain", "second/power_gd/other-momentum"}
CELLS = ITERATION | WK2023 | DESCENT


def test_the_copy_is_what_runs(fresh):
    found = fresh.python("-c", "import fedcore; print(fedcore.__file__)").stdout.strip()
    assert found == str(fresh.root / "fedcore" / "__init__.py")


def test_first_run_makes_everything(first_run):
    checkout, run = first_run
    assert run.status == 0, run.text
    made = checkout.files("results/tiny/histories/**/*.h5")
    assert set(made) == {f"results/tiny/histories/tiny/{cell}.h5" for cell in CELLS}
    assert "tiny: 1 reproduced, 1 not comparable, 1 not run (of 3 printed items)" in run.text
    status = {
        name: History.load(checkout.root / name).about["problem"]["status"]
        for name in made
        if "/wk2023/" in name
    }
    assert sorted(status.values()) == ["official", "synthetic"]


def test_an_executed_notebook_shows_its_figures(first_run):
    root = first_run[0].root
    book = json.loads((root / "results/tiny/notebooks/tiny.ipynb").read_text(encoding="utf-8"))
    outputs = [output for cell in book["cells"] for output in cell.get("outputs", [])]
    shown = [output["data"]["image/png"] for output in outputs if "image/png" in output["data"]]
    files = sorted((root / "results/tiny/figures/tiny").glob("*.png"))
    assert [base64.b64decode(image) for image in shown] == [file.read_bytes() for file in files]
    assert files


def test_second_run_has_nothing_to_do(done):
    again = done.snakemake()
    assert again.status == 0
    assert "Nothing to be done (all requested files are present and up to date)." in again.text


EDITS = {
    "fedcore/algorithms/power_iteration.py": ITERATION | DESCENT,  # imported by power_gd
    "fedcore/algorithms/power_gd.py": DESCENT,
    "fedcore/algorithms/wk2023.py": WK2023,
    "fedcore/generators/low_rank.py": {cell for cell in CELLS if "little" not in cell},
    "fedcore/history.py": CELLS,
}


@pytest.mark.parametrize("path", EDITS)
def test_edited_code(done, path):
    done.append(path, "\nEDITED = True\n")
    assert done.cells() == EDITS[path]


LITTLE = {cell for cell in CELLS if "little" in cell}
FUNCTIONS = {
    "fedcore/metrics/subspace.py": ("subspace_distance", DESCENT),
    "fedcore/datasets/formats/idx.py": ("read", LITTLE),
}


@pytest.mark.parametrize("path", FUNCTIONS)
def test_of_a_metric_and_a_loader_the_function_counts(done, path):
    function, cells = FUNCTIONS[path]
    done.append(path, "\n\ndef another(iterate, problem):\n    return 0.0\n")
    done.edit(
        "fedcore/datasets/loaders.py",
        "LOADERS = {",
        'LOADERS = {\n    "another": "fedcore.datasets.formats.idx:another",',
    )
    assert done.planned() == {}
    done.append(path, f"\n\n{function} = {function}\n")
    assert done.cells() == cells


def test_code_that_the_paper_does_not_use(done):
    unused = [
        "algorithms/yd2021",
        "cli/running",
        "reports/papers/factorization",
        "datasets/surrogates",
    ]
    unused += ["datasets/fetching", "datasets/download"]  # the checksums say what came
    for name in [*unused, "datasets/formats/libsvm", "metrics/factorization"]:
        assert (done.root / f"fedcore/{name}.py").is_file()
        done.append(f"fedcore/{name}.py", "\nEDITED = True\n")
    assert done.planned() == {}


TABLES = {"tables_tiny", "notebook_tiny", "verdicts", "summary", "report"}


@pytest.mark.parametrize("module", ["papers/tiny", "report", "results", "tables"])
def test_edited_report(done, module):
    done.append(f"fedcore/reports/{module}.py", "\nEDITED = True\n")
    rules = set(done.planned().values())
    assert rules == TABLES


def test_what_only_draws_is_no_part_of_tables_and_verdicts(done):
    done.append("fedcore/reports/plotting.py", "\nEDITED = True\n")
    done.edit("fedcore/reports/curve_styles.py", '"black": "#000000"', '"black": "#111111"')
    done.edit("notebooks/tiny.ipynb", '\\"o\\"', '\\"s\\"')
    assert set(done.planned().values()) == {"notebook_tiny", "report"}


def test_a_look_in_an_algorithms_docstring_draws_again_and_runs_no_cell(done):
    done.edit("fedcore/algorithms/wk2023.py", ":look: green, solid", ":look: black, dotted")
    assert set(done.planned().values()) == {"notebook_tiny", "report"}


def test_comments_and_docstrings_run_nothing(done):
    edited = 0
    for file in (done.root / "fedcore").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        if text.startswith('"""'):
            file.write_text('"""Edited. ' + text[3:] + "\n# a comment\n", encoding="utf-8")
            edited += 1
    assert edited > 30
    assert done.planned() == {}


REGISTRY = "config/datasets.yaml"
ENTRY = """note: Made by a test.
    loader: idx
"""


def test_words_and_addresses_of_the_registry_run_nothing(done):
    done.edit(REGISTRY, "description: Made by a test.", "description: Of a test.")
    done.edit(
        REGISTRY,
        "- {name: labels.gz, ",
        "- {urls: [http://127.0.0.1/x], bytes: 9, name: labels.gz, ",
    )
    assert done.planned() == {}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("status: official\n    " + ENTRY, "status: rebuilt\n    " + ENTRY),
        (ENTRY, ENTRY.replace("Made", "Copied")),
        ("- {name: labels.gz, sha256: ", "- {name: labels.gz, sha256: ffff"),
    ],
    ids=["status", "note", "checksum"],
)
def test_an_entry_of_the_registry_is_an_input_of_its_data_set_alone(done, old, new):
    text = (done.root / REGISTRY).read_text()
    if "ffff" in new:  # another sum of the same length
        start = text.index(old) + len(old)
        old, new = old + text[start : start + 64], old + "f" * 64
    done.edit(REGISTRY, old, new)
    assert done.cells() == LITTLE


PAPER = "config/papers/tiny.yaml"


@pytest.mark.parametrize(
    ("old", "new", "cells"),
    [
        ("{local_steps: 4}", "{local_steps: 5}", DESCENT),
        ("plain: {momentum: false}", "plain: {power: 1}", {"second/power_gd/other-plain"}),
        ("rounds: 3", "rounds: 2", WK2023),
        ("metrics: [objective]", "metrics: [objective, kappa]", ITERATION | WK2023),
        ("noise: 1.0e-3", "noise: 1.0e-2", {cell for cell in CELLS if "easy" in cell}),
    ],
    ids=["experiment", "variant", "run", "metrics", "problem"],
)
def test_edited_configuration(done, old, new, cells):
    done.edit(PAPER, old, new)
    assert done.cells() == cells


def test_words_run_no_cell(done):
    done.edit(PAPER, "label: other", "label: the other")
    done.edit(PAPER, "{kind: drawn}", "{kind: made}")
    assert set(done.planned().values()) == {"plan", *TABLES}


def test_what_a_paper_prints_is_part_of_its_verdicts_alone(done):
    done.edit("config/claims/tiny.yaml", "noise of 1e-3", "noise of 0.001")
    assert set(done.planned().values()) == {"verdicts", "summary", "report"}


def test_defaults_of_a_problem_leave_its_data_alone(done):
    defaults = "rank: 3}\n    defaults: {n_components: %d}"
    done.edit(PAPER, defaults % 2, defaults % 3)
    plan = done.planned()
    assert set(plan.values()) == {"plan", "run_power_gd", *TABLES}


def test_a_rerun_touches_nothing_else(done):
    """The same in a real run: bytes and times of all other histories stay."""
    everything = "results/tiny/histories/**/*.h5"
    before = done.files(everything)
    times = {name: (done.root / name).stat().st_mtime_ns for name in before}
    done.edit(PAPER, "{local_steps: 4}", "{local_steps: 5}")
    run = done.snakemake()
    assert run.status == 0, run.text
    after = done.files(everything)
    changed = {name for name in before if before[name] != after[name]}
    written = {name for name in before if times[name] != (done.root / name).stat().st_mtime_ns}
    assert changed == written == {f"results/tiny/histories/tiny/{cell}.h5" for cell in DESCENT}
    assert "Nothing to be done" in done.snakemake("-n").text


def test_two_runs_from_scratch_give_the_same_bytes(first_run, fresh):
    """The second run has two cores, so its jobs run in another order."""
    checkout, _ = first_run
    run = fresh.snakemake(cores=2)
    assert run.status == 0, run.text
    once, again = checkout.payload(), fresh.payload()
    assert set(once) == set(again)
    assert [name for name in once if once[name] != again[name]] == []
    assert {name.rpartition(".")[2] for name in once} == {"h5", "tsv", "md", "png", "pdf", "json"}


@pytest.mark.parametrize("folder", ["results", "results/quick"])
@pytest.mark.parametrize("start", [".", "notebooks"])
def test_a_notebook_opened_by_hand_finds_the_results(done, folder, start):
    """From the checkout or from notebooks/, on the full run or else on the quick one."""
    made = done.root / "results/tiny"
    for part in ("plans", "histories", "seconds", "tables"):
        shutil.copytree(made / part, done.root / folder / part, dirs_exist_ok=True)
    shutil.rmtree(made)
    code = (
        f"import os; os.chdir({start!r})\n"
        "from fedcore.reports.results import Results\n"
        "results = Results('results/plans/tiny.json')\n"
        "name = next(iter(results.plan['tables']))\n"
        "print(len(list(results.runs())), results.tables, len(results.rows(name)))"
    )
    found = done.python("-c", code)
    assert found.returncode == 0, found.stderr
    count, tables, _ = found.stdout.split()
    assert count == "6" and tables.endswith(f"{folder}/tables/tiny")

"""An edit runs exactly those jobs again that depend on it."""

from __future__ import annotations

import hashlib
import json
import shutil

import numpy as np
import pytest

from fedcore.history import History
from workflow.conftest import idx_gz

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
    assert "3 items as printed: 1 holds, 2 not run." in run.text
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
    assert len(shown) == len(files) > 0
    assert files


PAPER, REGISTRY = "papers/tiny/experiments.yaml", "config/datasets.yaml"
LITTLE = {cell for cell in CELLS if "little" in cell}
SITE = {"notebook_tiny", "report"}
TABLES = {"tables_tiny", "verdicts", "summary", *SITE}
ENTRY = "note: Made by a test.\n    loader: idx\n"
LOADERS = ("fedcore/datasets/loaders.py", "LOADERS = {",
           'LOADERS = {\n    "another": "fedcore.datasets.formats.idx:another",')  # fmt: skip
RANKS = "rank: 3}\n    defaults: {n_components: %d}"
SUM = "- {name: labels.gz, "
SHA256 = hashlib.sha256(idx_gz(np.arange(12) % 2)).hexdigest()


def module(name, code="EDITED = True"):
    return f"fedcore/{name}.py", None, f"\n\n{code}\n"


# Edits (file, text, other text; no text: the end of the file), and the cells that run again.
CELLS_OF = {
    "imported by power_gd": ([module("algorithms/power_iteration")], ITERATION | DESCENT),
    "an algorithm": ([module("algorithms/power_gd")], DESCENT),
    "another": ([module("algorithms/wk2023")], WK2023),
    "a generator": ([module("generators/low_rank")], CELLS - LITTLE),
    "histories": ([module("history")], CELLS),
    "a metric": ([module("metrics/subspace")], DESCENT),
    "a loader": ([module("datasets/formats/idx")], LITTLE),
    "status": ([(REGISTRY, f"official\n    {ENTRY}", f"rebuilt\n    {ENTRY}")], LITTLE),
    "note": ([(REGISTRY, ENTRY, ENTRY.replace("Made", "Copied"))], LITTLE),
    "checksum": ([(REGISTRY, SHA256, "f" * 64)], LITTLE),
    "experiment": ([(PAPER, "{local_steps: 4}", "{local_steps: 5}")], DESCENT),
    "variant": ([(PAPER, "{momentum: false}", "{power: 1}")], {"second/power_gd/other-plain"}),
    "run": ([(PAPER, "rounds: 3", "rounds: 2")], WK2023),
    "metrics": ([(PAPER, "[objective]", "[objective, kappa]")], ITERATION | WK2023),
    "problem": ([(PAPER, "1.0e-3", "1.0e-2")], {cell for cell in CELLS if "easy" in cell}),
}
UNUSED = (
    "algorithms/yd2021", "cli/running", "../papers/factorization/tables", "datasets/surrogates",
    "datasets/formats/libsvm", "metrics/regression", "errors", "validation",
)  # fmt: skip
# Edits, and the rules of which jobs run again.
RULES_OF = {
    "code that the paper does not use": ([module(name) for name in UNUSED], set()),
    "a new loader in the table": ([LOADERS], set()),
    "words that pages print": ([module("words")], TABLES),
    "its report": ([module("../papers/tiny/tables")], TABLES),
    "reports": ([module("repro/tables/report")], TABLES),
    "results": ([module("repro/tables/results")], TABLES),
    "tables": ([module("reports/tables")], TABLES),
    "drawing": ([module("reports/plotting"), ("notebooks/tiny.ipynb", '\\"o\\"', '\\"s\\"'),
                 ("fedcore/reports/curve_styles.py", '"#000000"', '"#111111"')], SITE),
    "a look": ([("fedcore/algorithms/wk2023.py", 'look=("green", "solid")',
                 'look=("black", "dotted")')], SITE),
    "words and addresses of the registry": ([
        (REGISTRY, "description: Made by a test.", "description: Of a test."),
        (REGISTRY, SUM, "- {urls: [http://127.0.0.1/x], bytes: 9, name: labels.gz, ")], set()),
    "labels and tags": ([(PAPER, "label: other", "label: the other"),
                         (PAPER, "{kind: drawn}", "{kind: made}")], {"plan", *TABLES}),
    "what is printed": ([("papers/tiny/claims.yaml", "noise of 1e-3", "noise of 0.001")],
                        {"verdicts", "summary", *SITE}),
    "defaults of a problem, whose data stay": ([(PAPER, RANKS % 2, RANKS % 3)],
                                               {"plan", "run_power_gd", *TABLES}),
}  # fmt: skip


def edit(checkout, edits):
    for path, old, new in edits:
        checkout.append(path, new) if old is None else checkout.edit(path, old, new)


@pytest.mark.parametrize("change", CELLS_OF)
def test_an_edit_runs_its_cells_again(done, change):
    edits, cells = CELLS_OF[change]
    edit(done, edits)
    assert done.cells() == cells


@pytest.mark.parametrize("change", RULES_OF)
def test_an_edit_runs_the_jobs_of_these_rules_again(done, change):
    edits, rules = RULES_OF[change]
    edit(done, edits)
    assert set(done.planned().values()) == rules


def test_comments_and_docstrings_run_nothing(done):
    edited = 0
    for file in (done.root / "fedcore").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        if text.startswith('"""'):
            file.write_text('"""Edited. ' + text[3:] + "\n# a comment\n", encoding="utf-8")
            edited += 1
    assert edited > 30
    assert done.planned() == {}


def test_a_rerun_touches_nothing_else(done):
    """The same in a real run: bytes and times of all other histories stay."""
    everything = "results/tiny/histories/**/*.h5"
    before = done.files(everything)
    times = {name: (done.root / name).stat().st_mtime_ns for name in before}
    done.edit(PAPER, "{local_steps: 4}", "{local_steps: 5}")
    done.run()
    after = done.files(everything)
    changed = {name for name in before if before[name] != after[name]}
    written = {name for name in before if times[name] != (done.root / name).stat().st_mtime_ns}
    assert changed == written == {f"results/tiny/histories/tiny/{cell}.h5" for cell in DESCENT}
    assert "Nothing to be done" in done.snakemake("-n").text


def test_two_runs_from_scratch_give_the_same_bytes(first_run, fresh):
    """The second run has two cores, so its jobs run in another order."""
    checkout, _ = first_run
    fresh.run(cores=2)
    once, again = checkout.payload(), fresh.payload()
    assert set(once) == set(again)
    assert [name for name in once if once[name] != again[name]] == []
    assert {name.rpartition(".")[2] for name in once} == {
        "h5",
        "tsv",
        "md",
        "tex",
        "png",
        "pdf",
        "json",
    }


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
        "from fedcore.repro.tables.results import Results\n"
        "results = Results('results/plans/tiny.json')\n"
        "name = next(iter(results.plan['tables']))\n"
        "print(len(list(results.runs())), results.tables, len(results.rows(name)))"
    )
    found = done.python("-c", code)
    assert found.returncode == 0, found.stderr
    count, tables, _ = found.stdout.split()
    assert count == "6" and tables.endswith(f"{folder}/tables/tiny")

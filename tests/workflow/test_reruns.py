"""An edit runs exactly those jobs again that depend on it."""

from __future__ import annotations

import hashlib
import json
import re
import shutil

import numpy as np
import pytest

from fedcore.history import History
from workflow.conftest import JOB, idx_gz

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
    histories = {name: History.load(checkout.root / name) for name in made}
    status = {h.about["problem"]["status"] for name, h in histories.items() if "/wk2023/" in name}
    assert status == {"official", "synthetic"}
    for name, history in histories.items():  # the last iterate is that of the run
        kept, recorded = history.iterates["iteration"], history["iteration"]
        assert (kept.max(axis=1) == recorded[: len(kept)].max(axis=1)).all(), name
        assert np.isfinite(history.iterates["shared"]).any(), name
    endings = {name.rpartition(".")[2] for name in checkout.payload()}
    assert endings == {"h5", "tsv", "md", "tex", "png", "pdf", "json"}


def test_an_executed_notebook_shows_its_figures(first_run):
    root = first_run[0].root
    book = json.loads((root / "results/tiny/notebooks/tiny.ipynb").read_text(encoding="utf-8"))
    outputs = [output for cell in book["cells"] for output in cell.get("outputs", [])]
    shown = [output["data"]["image/png"] for output in outputs if "image/png" in output["data"]]
    files = sorted((root / "results/tiny/figures/tiny").glob("*.png"))
    assert len(shown) == len(files) > 0


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


# Edits (file, text, other text; no text: the end of the file), and the cells that run again. Edits
# stand together where neither runs cells of the other, and some cells are left that neither runs.
CELLS_OF = {
    "an algorithm, and a loader": (
        [module("algorithms/power_gd"), module("datasets/formats/idx")], DESCENT | LITTLE),
    "another algorithm, and a variant": (
        [module("algorithms/wk2023"), (PAPER, "{momentum: false}", "{power: 1}")],
        WK2023 | {"second/power_gd/other-plain"}),
    "imported by power_gd": ([module("algorithms/power_iteration")], ITERATION | DESCENT),
    "a generator": ([module("generators/low_rank")], CELLS - LITTLE),
    "a metric, and a checksum": (
        [module("metrics/subspace"), (REGISTRY, SHA256, "f" * 64)], DESCENT | LITTLE),
    "an experiment, and a run": (
        [(PAPER, "{local_steps: 4}", "{local_steps: 5}"), (PAPER, "rounds: 3", "rounds: 2")],
        DESCENT | WK2023),
    "metrics": ([(PAPER, "[objective]", "[objective, kappa]")], ITERATION | WK2023),
    "a problem, and the status of data": (
        [(PAPER, "1.0e-3", "1.0e-2"),
         (REGISTRY, f"official\n    {ENTRY}", f"rebuilt\n    {ENTRY}")],
        ITERATION | WK2023),
    "a note on data": ([(REGISTRY, ENTRY, ENTRY.replace("Made", "Copied"))], LITTLE),
}  # fmt: skip
UNUSED = (
    "algorithms/yd2021", "cli/running", "../papers/factorization/tables", "datasets/surrogates",
    "datasets/formats/libsvm", "metrics/regression", "errors", "validation",
)  # fmt: skip
READ = ("../papers/tiny/tables", "words", "repro/tables/report", "repro/tables/results",
        "reports/tables")  # fmt: skip
# Edits, and the rules of which jobs run again.
RULES_OF = {
    "drawing": ([module("reports/plotting"), ("notebooks/tiny.ipynb", '\\"o\\"', '\\"s\\"'),
                 ("fedcore/reports/curve_styles.py", '"#000000"', '"#111111"')], SITE),
    "a look": ([("fedcore/algorithms/wk2023.py", 'look=("green", "solid")',
                 'look=("black", "dotted")')], SITE),
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
def test_edits_run_their_cells_again(done, change):
    edits, cells = CELLS_OF[change]
    edit(done, edits)
    assert done.cells() == cells


@pytest.mark.parametrize("change", RULES_OF)
def test_an_edit_runs_the_jobs_of_these_rules_again(done, change):
    edits, rules = RULES_OF[change]
    edit(done, edits)
    assert set(done.planned().values()) == rules


def test_tables_run_again_for_each_module_that_they_read_and_the_reason_names_it(done):
    edit(done, [module(name) for name in READ])
    jobs = {match["rule"]: match["reason"] for match in JOB.finditer(done.run("-n").text)}
    assert jobs.keys() == TABLES
    named = set(re.findall(r"\('([\w.]+)', '\w+'\)", jobs["tables_tiny"]))
    assert named == {"tiny.tables", *(f"fedcore.{name.replace('/', '.')}" for name in READ[1:])}


def test_what_no_job_reads_runs_nothing(done):
    """Comments, docstrings, code that the paper does not use, words of the registry."""
    edited = 0
    for file in (done.root / "fedcore").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        if text.startswith('"""'):
            file.write_text('"""Edited. ' + text[3:] + "\n# a comment\n", encoding="utf-8")
            edited += 1
    assert edited > 30
    edit(done, [*map(module, UNUSED), LOADERS])
    done.edit(REGISTRY, "description: Made by a test.", "description: Of a test.")
    done.edit(REGISTRY, SUM, "- {urls: [http://127.0.0.1/x], bytes: 9, name: labels.gz, ")
    assert done.planned() == {}


def test_a_rerun_touches_nothing_else(done):
    """The same in a real run: bytes and times of all other histories stay."""
    everything, table = "results/tiny/histories/**/*.h5", "results/tiny/tables/tiny/ends.tsv"
    before = done.files(everything)
    times = {name: (done.root / name).stat().st_mtime_ns for name in before}
    done.edit(PAPER, "{local_steps: 4}", "{local_steps: 5}")
    done.run(table)
    after = done.files(everything)
    changed = {name for name in before if before[name] != after[name]}
    written = {name for name in before if times[name] != (done.root / name).stat().st_mtime_ns}
    assert changed == written == {f"results/tiny/histories/tiny/{cell}.h5" for cell in DESCENT}
    assert "Nothing to be done" in done.snakemake("-n", table).text


@pytest.mark.parametrize(("start", "folder"), [("notebooks", "results"), (".", "results/quick")])
def test_a_notebook_opened_by_hand_finds_the_results(done, start, folder):
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

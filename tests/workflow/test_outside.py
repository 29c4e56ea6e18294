"""The example of a plug-in, copied out of the checkout, runs as it stands: nothing is edited."""

from __future__ import annotations

import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedcore.history import History
from fedcore.reports import tables
from fedcore.repro.verdicts import verdict_pages
from site_pages import dead_links

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"
TINY = Path(__file__).parent / "tiny"
RANK, FEATURES, WARDS = 2, 6, 3
# The subspaces are apart from the rest by σ₂² − σ₃² = 28 of σ₁² = 326: rounding grows 12 times.
ROUNDING = 1e-12


def outside(checkout, folder, installed):
    """Copy the example into a folder, and let the checkout's Python import it from there."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    settings = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    entries = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in settings["project"]["entry-points"].items()
    )
    installed(folder, settings["project"]["name"].replace("-", "_"), entries)
    return replace(checkout, beside=(folder,))


@pytest.fixture(scope="module")
def hospital(pristine, tmp_path_factory, installed):
    """A checkout in which the example's paper has run, with its path on the command line."""
    root = tmp_path_factory.mktemp("outside")
    checkout = outside(pristine.copy(root / "checkout"), root / "elsewhere", installed)
    return checkout, checkout.snakemake("--config", f"papers=[{root}/elsewhere/hospital]")


@pytest.fixture
def own(hospital, tmp_path, installed):
    """Return a test's own copy of both, and the option that names the paper."""
    finished, run = hospital
    assert run.status == 0, run.text
    folder = Path(shutil.copytree(finished.beside[0], tmp_path / "elsewhere"))
    checkout = replace(finished.copy(tmp_path / "checkout"), beside=(folder,))
    return checkout, ("--config", f"papers=[{folder}/hospital]")


def patients():
    """The wards' rows in standard scores, by NumPy alone."""
    table = np.loadtxt(EXAMPLE / "federated_wards/wards.csv", delimiter=",", skiprows=1)
    scores = (table[:, 1:] - table[:, 1:].mean(axis=0)) / table[:, 1:].std(axis=0)
    return [scores[table[:, 0] == ward] for ward in range(WARDS)]


def leading(matrix):
    return np.linalg.svd(matrix)[2][:RANK].T


def sine(one, other):
    cosines = np.linalg.svd(one.T @ other)[1]
    return np.sqrt(max(0.0, 1 - cosines.min() ** 2))


def test_its_method_keeps_the_contract(hospital):
    done = hospital[0].python("-m", "fedcore", "check", "federated_wards.stacked_svd")
    assert done.returncode == 0 and " passed, 2 skipped" in done.stdout, done.stdout + done.stderr


def test_it_runs_to_the_site_and_reaches_numpys_answer(hospital):
    checkout, run = hospital
    assert run.status == 0, run.text
    found = tables.read(checkout.root / "results/tiny/tables/hospital/ends.tsv")
    rows = {(row["algorithm"], row["variant"]): row for row in found}
    clients = patients()
    exact = leading(np.vstack(clients))
    # What a client sends: two directions, or all six; and one_shot the directions alone.
    lean = leading(np.vstack([np.diag(s[:RANK]) @ vt[:RANK] for _, s, vt in map(svd, clients)]))
    mean = sum(leading(x) @ leading(x).T for x in clients)
    expected = {
        ("stacked_svd", "lean"): (lean, RANK),
        ("stacked_svd", "exact"): (exact, FEATURES),
        ("one_shot", "default"): (np.linalg.eigh(mean)[1][:, -RANK:], RANK),
    }
    assert rows.keys() == expected.keys()
    for name, (basis, sent) in expected.items():
        row = rows[name]
        path = f"hospital/one_round/{name[0]}/wards-{name[1]}.h5"
        kept = History.load(checkout.root / "results/tiny/histories" / path).final["basis"][0]
        assert np.abs(kept @ kept.T - basis @ basis.T).max() < ROUNDING
        assert row["subspace_distance"] == pytest.approx(sine(basis, exact), abs=1e-7)
        shares = [np.linalg.norm(x @ basis) ** 2 / np.linalg.norm(x) ** 2 for x in clients]
        assert row["worst_share"] == pytest.approx(min(shares), rel=ROUNDING)
        assert (row["rounds"], row["bytes_down"]) == (1, 0)
        assert row["bytes_up"] == WARDS * sent * FEATURES * 8
    assert rows["stacked_svd", "exact"]["subspace_distance"] < ROUNDING
    assert rows["stacked_svd", "lean"]["subspace_distance"] > 0.1  # so that the exact one says much
    assert dead_links(checkout.root / "results/tiny/report") == []


def svd(matrix):
    return np.linalg.svd(matrix, full_matrices=False)


DATA = {  # what a data set is made from, and what is added to it
    "elsewhere/federated_wards/wards.py": b"EDITED = True\n",
    "elsewhere/federated_wards/wards.csv": b"2,1,2,3,4,5,6\n",
    "checkout/data/raw/wards/own.txt": b"1\n",
}


def test_it_runs_again_when_it_changes_and_not_otherwise(own):
    checkout, named = own

    def planned():
        return {rule for rule in checkout.planned(*named).values() if rule.startswith("run_")}

    # In another folder the paper's path differs, and with it the plan alone.
    assert planned() == set()
    checkout.run(*named)
    assert checkout.planned(*named) == {}
    method = checkout.beside[0] / "federated_wards/stacked_svd.py"
    text = method.read_text(encoding="utf-8")
    method.write_text(text.replace("full_matrices=False)[2]", "full_matrices=True)[2]"))
    assert planned() == {"run_stacked_svd"}
    method.write_text(text.replace("NIPS", "NeurIPS"))  # a docstring
    assert planned() == set()
    for name, added in DATA.items():
        file = checkout.beside[0].parent / name
        kept = file.read_bytes() if file.exists() else None
        file.parent.mkdir(exist_ok=True)
        file.write_bytes((kept or b"") + added)
        assert planned() == {"run_stacked_svd", "run_one_shot"}, name
        file.write_bytes(kept) if kept else file.unlink()
    paper = checkout.beside[0] / "hospital/experiments.yaml"
    paper.write_text(paper.read_text().replace("extra: 4", "extra: 3"))
    assert planned() == {"run_stacked_svd"}


CLAIMS = """
items:
  - id: exact
    source: NIPS 2014
    kind: sentence
    title: The subspace is exact when every direction is sent
    printed: none
    select: {table: mine, where: {variant: exact}, column: distance}
    test: {exact: {at_most: 1.0e-10}}
    because: rounding
  - id: lean
    source: NIPS 2014
    kind: sentence
    title: The subspace is exact when two directions are sent
    printed: none
    select: {table: mine, where: {variant: lean}, column: distance}
    test: {exact: {at_most: 1.0e-10}}
    because: rounding
"""
REPORT = """
from fedcore.repro.tables.report import Table
from fedcore.repro.tables.results import last


def mine(results):
    return results.table("one_round", distance=last("subspace_distance"))


TABLES = {"mine": Table(mine)}
"""


def test_claims_tables_and_figures_beside_the_paper(own):
    """The paper is named by a relative path, which starts where Snakemake runs."""
    checkout, _ = own
    folder = checkout.beside[0]
    paper = folder / "hospital/experiments.yaml"
    with paper.open("a", encoding="utf-8") as file:
        file.write("tables: {mine: Distances}\nfigures: {distances: Distances}\n")
    named = ("--config", "papers=[../elsewhere/hospital]")

    book = (TINY / "figures.ipynb").read_text(encoding="utf-8")
    book = book.replace("plans/tiny", "plans/hospital").replace("objective", "distance")
    book = book.replace('rows(\\"ends\\")', 'rows(\\"mine\\")')
    book = book.replace('figures / \\"ends\\"', 'figures / \\"distances\\"')
    book = book.replace('\\"first\\"', '\\"one_round\\"')
    # The notebook imports the module beside it.
    book = book.replace(
        "results = Results(plan)", 'from hospital import tables\\n", "results = Results(plan)'
    )
    (folder / "hospital/figures.ipynb").write_text(book, encoding="utf-8")
    (folder / "hospital/tables.py").write_text(REPORT, encoding="utf-8")
    (folder / "hospital/claims.yaml").write_text(CLAIMS, encoding="utf-8")

    checkout.run(*named)
    results = checkout.root / "results/tiny"
    verdicts = {v.id: v.word for v in verdict_pages.read(results / "verdicts/hospital.tsv")}
    assert verdicts == {"exact": "holds", "lean": "fails"}
    assert (results / "figures/hospital/distances.png").is_file()
    assert (results / "report/hospital/exact.html").is_file()
    assert (results / "report/hospital/notebook.html").is_file()
    assert dead_links(results / "report") == []
    assert checkout.planned(*named) == {}
    (folder / "hospital/tables.py").write_text(REPORT + "\nA = 1\n", encoding="utf-8")
    assert "tables_hospital" in checkout.planned(*named).values()

    # A run of another paper keeps the pages, and says what it cannot show.
    shutil.move(folder / "hospital/claims.yaml", folder / "gone")
    checkout.run("results/tiny/report/index.html", "--forcerun", "report")
    assert "../elsewhere/hospital/claims.yaml" in (results / "logs/report.log").read_text()

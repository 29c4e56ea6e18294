"""After a failed job, no run succeeds before every product exists; once mended, all are made."""

from __future__ import annotations

import os
import re
import shutil

from fedcore.repro.verdicts import verdict_pages
from workflow.conftest import BREAKS

# For rules of each kind, a source file that its job runs, and the code that the test appends to it.
BUGS = {
    "problem": (  # fails when it draws, because its parameters are checked before any job runs
        "fedcore/generators/low_rank.py",
        "def generate(rng, n_clients, samples, n_features, rank, singular_values=None, noise=0):"
        " rng.random();",
    ),
    "run_power_gd": ("fedcore/algorithms/power_gd.py", "def broken(*args):"),
    "notebook_tiny": ("notebooks/tiny.ipynb", ""),
    "verdicts": ("fedcore/repro/verdicts/verdicts.py", "def judge(*args, **options):"),
    "report": ("fedcore/repro/site/build.py", "def write(*args, **options):"),
}


def insert_bug(checkout, rule):
    """Let the jobs of a rule fail; return the function that mends it."""
    path, function = BUGS[rule]
    before = (checkout.root / path).read_text()
    bug = f"""{function}{" " * bool(function)}raise RuntimeError('a bug')"""
    if path.endswith(".ipynb"):
        checkout.edit(path, "results = Results(plan)", bug)
    else:
        checkout.append(path, f"\n{bug}\n{BREAKS if rule.startswith('run_') else ''}")
    return lambda: (checkout.root / path).write_text(before)


def test_a_run_after_a_failed_job_fails_until_it_is_mended(first_run, done):
    """In the order of the jobs: a run gets past what was mended, as far as the next bug."""
    for rule in BUGS:
        mend = insert_bug(done, rule)
        for _ in range(1 + (rule == "notebook_tiny")):  # the one with several kinds of files
            run = done.snakemake()
            assert run.status == 1
            assert set(re.findall(r"Error in rule (\w+):", run.text)) == {rule}
            assert "Nothing to be done" not in run.text
        mend()
    done.run()
    assert done.payload() == first_run[0].payload()


LOST = [
    "data/clients/tiny/tiny/easy.h5",
    "results/tiny/histories/tiny/second/power_gd/other-plain.h5",
    "results/tiny/plans/tiny.json",
    "results/tiny/tables/tiny/ends.md",
    "results/tiny/figures/tiny/ends.pdf",
    "results/tiny/verdicts/tiny.md",
    "results/tiny/verdicts.tsv",
    "results/tiny/verdicts.md",
]


def test_whatever_is_deleted_is_made_again(first_run, done):
    """First by its paper alone, which does not make what all papers share."""
    for name in ("figures/tiny/ends.png", "verdicts.tsv"):
        (done.root / "results/tiny" / name).unlink()
    assert set(done.planned().values()) == {"notebook_tiny", "summary", "report"}
    for name in LOST:
        (done.root / name).unlink(missing_ok=True)
    whole = first_run[0].payload()
    done.run("tiny")
    assert done.payload() == {n: m for n, m in whole.items() if "tiny/verdicts." not in n}
    done.run()
    assert done.payload() == whole


DERIVED = {  # a derived file, and the job that reads it next
    "results/tiny/plans/tiny.json": "tables_tiny",
    "results/tiny/tables/tiny/ends.tsv": "verdicts",
    "results/tiny/tables/tiny/ends.md": "notebook_tiny",
    "results/tiny/figures/tiny/ends.png": "report",
    "results/tiny/verdicts/tiny.tsv": "summary",
}


def test_whatever_is_damaged_is_refused_by_its_next_reader(first_run, done):
    """From the last file to the first, which is deleted in the end and made again.

    In this order Snakemake deletes nothing of a failed job that is looked at later.
    """
    for name, reader in reversed(DERIVED.items()):
        path = done.root / name
        whole, time = path.read_bytes(), path.stat().st_mtime_ns
        for content in (whole[:-20], whole):
            path.write_bytes(content)
            os.utime(path, ns=(time, time))
            if content != whole:
                stopped = done.snakemake("--forcerun", reader)
                assert stopped.status == 1 and f"{name} is damaged" in stopped.text
    path.unlink()
    done.run()
    assert done.payload() == first_run[0].payload()


def test_damaged_notes_of_snakemake(first_run, done):
    notes = [path for path in (done.root / ".snakemake/metadata").rglob("*") if path.is_file()]
    assert len(notes) > 10
    for number, path in enumerate(sorted(notes)):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2] if number % 2 else b"")
    done.run()
    assert done.payload() == first_run[0].payload()
    assert "Nothing to be done" in done.snakemake("-n").text


def test_data_that_are_gone_take_no_results_with_them(first_run, done):
    """`little` cannot be fetched again: its results stay, and a change of the problem fails."""
    shutil.rmtree(done.root / "data/raw/little")
    run = done.run()
    assert "Nothing to be done" in run.text
    done.edit("papers/tiny/experiments.yaml", "scale: unit", "scale: signed_unit")
    run = done.snakemake("results/tiny/verdicts/tiny.tsv")
    assert run.status == 1
    assert "Error: data set 'little' needs 'images.gz'" in run.text
    before, after = first_run[0].payload(), done.payload()
    assert before.keys() == after.keys()
    differing = {name for name in before if before[name] != after[name]}
    # Snakemake may have made the new plan before, which holds settings and no results.
    assert differing <= {"results/tiny/plans/tiny.json"}


def add_paper(checkout, name):
    """Add a second paper, a copy of the first, and ask for both."""
    for path in (
        "papers/{}/experiments.yaml",
        "papers/{}/claims.yaml",
        "papers/{}/tables.py",
        "notebooks/{}.ipynb",
    ):
        (checkout.root / path.format(name)).parent.mkdir(exist_ok=True)
        shutil.copy2(checkout.root / path.format("tiny"), checkout.root / path.format(name))
    checkout.edit(f"notebooks/{name}.ipynb", "plans/tiny", f"plans/{name}")
    checkout.edit("tiny.yaml", "[tiny]", f"[tiny, {name}]")


def combined(checkout):
    found = verdict_pages.read(checkout.root / "results/tiny/verdicts.tsv")
    return sorted({verdict.paper for verdict in found})


def test_a_paper_of_which_nothing_can_run_has_verdicts_alone(fresh):
    fresh.append("tiny.yaml", '\noverrides: {tiny: {cells: {"*": false}}}\n')
    run = fresh.run()
    assert "Not run: tiny/first, tiny/second" in run.text and "it is left out" in run.text
    results = fresh.root / "results/tiny"
    made = {str(file.relative_to(results)) for file in results.glob("*/tiny*")}
    assert made == {"verdicts/tiny.tsv", "verdicts/tiny.md", "plans/tiny.json", "report/tiny"}
    lines = (results / "verdicts/tiny.tsv").read_text().splitlines()[1:]
    assert lines and all("not run" in line for line in lines)


def test_two_papers_of_which_one_fails(done):
    """The name has a capital and digits. The other paper is made to its end."""
    add_paper(done, "Smith2024")
    mend = insert_bug(done, "notebook_tiny")
    run = done.snakemake("--keep-going")
    assert run.status == 1 and "Error in rule notebook_tiny:" in run.text
    assert (done.root / "results/tiny/verdicts/Smith2024.tsv").is_file()
    mend()
    done.run()
    assert combined(done) == ["Smith2024", "tiny"]
    assert "Nothing to be done" in done.snakemake("-n").text

    done.edit("tiny.yaml", "[tiny, Smith2024]", "[tiny]")
    done.run()
    assert combined(done) == ["tiny"]

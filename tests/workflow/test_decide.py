"""`fedcore decide` gives repeats to the cells of undecided items, and nothing is left to run."""

from __future__ import annotations

import shutil

import pytest
import yaml

from fedcore.history import History
from fedcore.repro.commands.decide import forced
from fedcore.repro.verdicts import verdict_pages

SMALL = """
  - id: small
    title: Most losses are small
    source: Section 1
    kind: sentence
    printed: "losses are small"
    select: {table: ends, where: {problem: easy, algorithm: power_iteration}, column: objective}
    test: {most_runs: {at_most: 1}}
    because: a limit of ours
"""
METHODS = ("power_iteration", "wk2023")


def decided(checkout, *options):
    found = checkout.python(
        "-m", "fedcore", "decide", "--configfile", "tiny.yaml", "--cores", "1", *options
    )
    return found.returncode, found.stdout + found.stderr


def words(checkout):
    file = checkout.root / "results/tiny/verdicts/tiny.tsv"
    return {verdict.id: verdict.word for verdict in verdict_pages.read(file)}


def losses(checkout):
    file = "results/tiny/histories/tiny/first/power_iteration/easy-default.h5"
    return History.load(checkout.root / file).last("objective")


@pytest.mark.slow
def test_an_item_that_lacks_runs_gets_them_and_nothing_is_left_to_run(done):
    before = losses(done)
    done.edit("papers/tiny/claims.yaml", "\nitems:\n", f"\nitems:{SMALL}")
    # Two tables share what the paper keeps of its histories.
    done.edit("papers/tiny/tables.py", "\ndef ends", "\n@cache\ndef ends")
    done.edit(
        "papers/tiny/tables.py", "annotations\n", "annotations\n\nfrom functools import cache\n"
    )
    done.edit("papers/tiny/tables.py", "= {", '= {"all": Table(lambda results: ends(results)), ')
    done.edit("papers/tiny/experiments.yaml", "\ntables:", '\ntables:\n  all: "All losses"')
    status, said = decided(done, "--hours", "1e-6")
    assert status == 0 and "small stays undecided" in said, said
    assert not (done.root / "config/repeats.yaml").exists()
    status, said = decided(done, "--hours", "1")
    assert status == 0 and "small: undecided -> holds" in said, said
    assert words(done)["small"] == "holds"
    given = yaml.safe_load((done.root / "config/repeats.yaml").read_text(encoding="utf-8"))
    # Seven of seven runs show it; the other cells of the experiment get as many.
    names = [f"first/{a}/{p}-default" for a in METHODS for p in ("easy", "little")]
    assert given["repeats"]["tiny"] == dict.fromkeys(names, 7)
    after = losses(done)
    assert len(after) == 7 and (after[:2] == before).all()
    assert not done.planned()
    status, said = decided(done, "--hours", "1")
    assert status == 0 and "0 cells got repeats" in said, said


def test_runs_that_snakemake_has_no_record_of_get_repeats(done):
    done.edit("papers/tiny/claims.yaml", "\nitems:\n", f"\nitems:{SMALL}")
    shutil.rmtree(done.root / ".snakemake/metadata")
    status, said = decided(done, "--hours", "1")
    assert status == 0 and len(losses(done)) == 7, said
    assert not done.planned()


def test_papers_that_get_no_repeats_keep_what_they_have(tmp_path):
    names = ("plans/one.json", "histories/one/e/m/c.h5")
    expected = ["--forcerun", *(str(tmp_path / name) for name in names)]
    assert forced(tmp_path, ["one/e/m/c"]) == expected
    assert forced(tmp_path, []) == []


def test_without_words_there_is_nothing_to_decide(fresh):
    status, said = decided(fresh, "--hours", "1")
    assert status == 1 and said.splitlines()[-1].startswith("Error: ")
    assert not (fresh.root / "config/repeats.yaml").exists()

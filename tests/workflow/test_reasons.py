"""Why a cell runs again: the function or the parameter that has changed."""

from __future__ import annotations

import json

import pytest

from fedcore.cli.results import UNCHANGED

HISTORY = "results/tiny/histories/tiny/second/power_gd/other-plain.h5"
WK2023 = "results/tiny/histories/tiny/first/wk2023/easy-default.h5"


def why(checkout, file, *options):
    run = checkout.python("-m", "fedcore", "why", file, "--configfile", "tiny.yaml", *options)
    return run.returncode, run.stdout.strip() or run.stderr.strip()


def test_nothing_has_changed_after_a_run(done):
    assert why(done, HISTORY) == (0, UNCHANGED)
    assert why(done, HISTORY, "--json") == (0, "[]")


def test_the_changed_function_is_named_and_a_comment_is_none(done):
    done.append("fedcore/algorithms/power_gd.py", "\n# a comment\n\n\ndef added():\n    return 1\n")
    status, text = why(done, HISTORY)
    assert status == 0
    assert text.splitlines() == ["fedcore.algorithms.power_gd:added is new"]
    assert json.loads(why(done, HISTORY, "--json")[1]) == text.splitlines()
    file = done.root / "fedcore/algorithms/power_gd.py"
    source = file.read_text()
    file.write_text(source.replace("    return 1", "    return 2"))
    assert done.snakemake("-n").status == 0
    run = done.snakemake(HISTORY)
    assert run.status == 0, run.text
    assert "Run again because fedcore.algorithms.power_gd:added is new (1 cell)" in run.text
    file.write_text(source.replace("    return 1", "    return 3"))
    assert why(done, HISTORY)[1] == "fedcore.algorithms.power_gd:added has changed"
    file.write_text(source[: source.index("\n\ndef added")])
    assert why(done, HISTORY)[1] == "fedcore.algorithms.power_gd:added is gone"


def test_a_function_far_away_is_named(done):
    done.edit("fedcore/linalg.py", "def orth(", "def orth(  # noqa\n    ")
    assert why(done, HISTORY)[1] == UNCHANGED  # the same tree
    done.append("fedcore/history.py", "\nSCHEMA_OF_A_TEST = 9\n")
    for file in (HISTORY, WK2023):
        assert why(done, file)[1] == "fedcore.history:SCHEMA_OF_A_TEST is new"


def test_changed_settings_are_named(done):
    done.edit("config/papers/tiny.yaml", "local_steps: 4", "local_steps: 7")
    done.edit("config/papers/tiny.yaml", "repeats: 3", "repeats: 5")
    done.edit("config/papers/tiny.yaml", "[subspace_distance]", "[subspace_distance, kkt]")
    done.append("tiny.yaml", "\nseed: 1\n")
    said = why(done, HISTORY)[1].splitlines()
    assert said[:4] == [
        "parameter local_steps was 4 and is 7",
        "number of repeats was 3 and is 5",
        "seed was 2024 and is 1",
        "the measure kkt is new",
    ]
    assert "fedcore.metrics.eigenspace:kkt is new" in said


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("results/tiny/verdicts.tsv", "is no history of a cell"),
        ("results/tiny/histories/tiny/second/power_gd/other-plane.h5", "did you mean"),
    ],
)
def test_a_file_that_is_no_cell_gets_a_sentence(done, file, message):
    status, text = why(done, file)
    assert status == 1 and message in text


@pytest.mark.fault(
    "damaged",
    "an old history that cannot be read when the run says why it runs again",
)
def test_a_history_that_cannot_be_read_does_not_stop_the_run(done):
    (done.root / HISTORY).write_bytes(b"no history")
    status, text = why(done, HISTORY)
    assert status == 1 and "Error: " in text
    done.append("fedcore/algorithms/power_gd.py", "\nEDITED = True\n")
    run = done.snakemake(HISTORY)
    assert run.status == 0, run.text
    assert "the history cannot be read (1 cell)" in run.text


def test_a_new_entry_of_a_table_is_no_reason(done):
    """What fingerprints leave out, reasons leave out, too."""
    done.edit(
        "fedcore/problems/clients.py",
        "from __future__ import annotations\n",
        "from __future__ import annotations\n\nTABLE = {}\n",
    )
    assert why(done, HISTORY)[1] == "fedcore.problems.clients:TABLE is new"
    assert done.snakemake(HISTORY).status == 0
    done.edit("fedcore/problems/clients.py", "TABLE = {}", 'TABLE = {"a": "fedcore.linalg:orth"}')
    assert why(done, HISTORY)[1] == UNCHANGED


def test_without_a_history_and_without_what_was_kept(done):
    for file in (done.root / "results/tiny/code").iterdir():
        file.unlink()
    done.append("fedcore/algorithms/wk2023.py", "\nEDITED = True\n")
    assert "is not kept" in why(done, WK2023)[1]
    (done.root / WK2023).unlink()
    assert why(done, WK2023) == (0, "there is no history yet")

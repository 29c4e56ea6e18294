"""A number and its noun, in messages that say how many there are of something."""

from __future__ import annotations

import numpy as np
import pytest

from fedcore.errors import FedcoreError
from fedcore.federation.federation import Federation
from fedcore.problems.clients import check_clients, check_labels
from fedcore.problems.labelled import per_row
from fedcore.reports import tables
from fedcore.words import counted


def test_one_has_no_plural():
    assert [counted(n, "round") for n in (0, 1, 2)] == ["0 rounds", "1 round", "2 rounds"]
    found = [counted(n, "history", "histories") for n in (1, 2)]
    assert found == ["1 history", "2 histories"]


SAID = {
    "client 1 has 1 feature, client 0 has 2": lambda path: check_clients(
        [np.ones((3, 2)), np.ones((3, 1))]
    ),
    "the matrix has 1 row:": lambda path: per_row([1, 2], "groups", 1),
    "each of 1 client; got 2": lambda path: check_labels([np.ones(1)] * 2, [np.ones((1, 3))]),
    "line 2: 1 cell under 2 columns": lambda path: tables.read(path),
    r"each of 1 client; got \[3, 4\]": lambda path: Federation([np.ones((3, 2))], 0, ids=[3, 4]),
}


@pytest.mark.parametrize("said", SAID)
def test_messages_about_one(said, tmp_path):
    path = tmp_path / "table.tsv"
    path.write_text("a\tb\n1\n")
    with pytest.raises(FedcoreError, match=said):
        SAID[said](path)

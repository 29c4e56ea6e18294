"""Names in messages: the nearest one, and of many only those that are alike."""

from __future__ import annotations

import pytest

from fedcore.errors import ALIKE, FedcoreError, nearest


def test_of_many_names_those_that_are_alike_are_listed_and_the_others_counted():
    names = ["rounds", "round", "sounds", *(f"k{i}" for i in range(100))]
    said = nearest("rouns", names)
    assert said.startswith("did you mean 'rounds'? known: ") and said.endswith(" and 95 more")
    shown = said.partition("known: ")[2].removesuffix(" and 95 more").split(", ")
    assert len(shown) == ALIKE and shown == sorted(shown)
    assert {"rounds", "round", "sounds"} <= set(shown) <= set(names)


@pytest.mark.parametrize("length", [1, 999, 1000, 1001, 100_000])
@pytest.mark.parametrize("kind", FedcoreError.__subclasses__())
def test_a_message_is_bounded_and_keeps_where_it_begins_and_how_it_ends(kind, length):
    middle = "x" * length
    said = str(kind(f"claims.yaml, a1: {middle}: name it"))
    assert len(said) <= 1000 and said.startswith("claims.yaml, a1: ") and said.endswith(": name it")

"""Curves of the report's site: how runs are told apart."""

from __future__ import annotations

from fedcore.reports.looks import CYCLE
from fedcore.reports.site.curves import _tell_apart


def runs(*algorithms: str) -> list[dict]:
    return [{"algorithm": name, "colour": CYCLE[1]} for name in algorithms]


def test_variants_of_a_single_algorithm_have_colours_of_their_own():
    found = runs("faps", "faps", "faps")
    _tell_apart(found)
    assert [run["colour"] for run in found] == CYCLE[1:4]


def test_of_several_algorithms_each_keeps_its_colour():
    found = runs("faps", "faps", "ssi")
    _tell_apart(found)
    assert [run["colour"] for run in found] == [CYCLE[1]] * 3


def test_no_two_runs_of_a_plot_look_alike():
    """The seventh variant once looked like the first, and methods of one colour like another."""
    for found in (runs(*["faps"] * 12), runs("faps", "faps", "ssi", "wk2023")):
        _tell_apart(found)
        assert len({(run["colour"], run["dash"]) for run in found}) == len(found)

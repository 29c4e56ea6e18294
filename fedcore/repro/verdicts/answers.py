"""Answers: what the headline claims of a paper say together, why items fail, what was not judged.

Every sentence here follows from words, from the names of headlines, and from the clauses of
changes; nobody types one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from fedcore.repro.verdicts.claim_tests import FAILS, HOLDS, UNDECIDED
from fedcore.repro.verdicts.verdicts import NOT_RUN, SOFTWARE, WORDS, Change, Verdict
from fedcore.words import counted

AS_PRINTED, OTHERWISE = "as printed", "otherwise"


def headlines(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the headline claims."""
    return [v for v in verdicts if v.headline and v.section != SOFTWARE]


def answer(verdicts: Iterable[Verdict]) -> str:
    """Return the answer to a paper's question, by the rule of ``docs/judging.md``.

    Examples
    --------
    >>> answer([])
    'Cannot say: no headline claims are set.'
    """
    found = headlines(verdicts)
    if not found:
        return "Cannot say: no headline claims are set."
    words = Counter(v.word for v in found)
    hold, fail = words[HOLDS], words[FAILS]
    if 2 * (hold + fail) < len(found):
        return f"Cannot say as printed{_others(found)}."
    failing = [v for v in found if v.word == FAILS]
    if hold == len(found):
        return "Yes."
    if fail > hold:
        return f"No, not as printed{_conditions(failing)}."
    if not fail:
        return "Mostly." if 2 * hold > len(found) else f"Cannot say as printed{_others(found)}."
    holding = [v for v in found if v.word == HOLDS]
    said = f"{_together(holding, HOLDS)}; {_together(failing, FAILS)}"
    return f"Partly: {said}{_conditions(failing)}."


def _together(verdicts: Sequence[Verdict], word: str) -> str:
    *first, last = [v.headline for v in verdicts]
    names = f"{', '.join(first)} and {last}" if first else last
    return f"{names} {form(word, len(verdicts))}"


def _others(found: Sequence[Verdict]) -> str:
    """Say how many second lines hold."""
    seconds = [v.otherwise for v in found if v.otherwise is not None]
    hold = sum(reading.state == HOLDS for reading in seconds)
    return f"; otherwise {hold} of {counted(len(seconds), 'claim')} hold" if hold else ""


def _conditions(failing: Sequence[Verdict]) -> str:
    """Say under which changes failing headlines hold."""
    groups: dict[str, list[Verdict]] = {}
    for v in failing:
        if (reading := v.otherwise) is not None and reading.state == HOLDS:
            groups.setdefault(_clause(reading.replaces), []).append(v)
    parts = [
        f"; holds if {how}" if len(mine) == len(failing) else f"; {_together(mine, HOLDS)} if {how}"
        for how, mine in groups.items()
    ]
    return "".join(parts)


def _clause(changes: Iterable[Change]) -> str:
    return " and ".join(change.what for change in changes)


def first_line(verdict: Verdict) -> str:
    """Return the evidence of the first line, or why there is none."""
    return "; ".join(filter(None, [verdict.measured, verdict.why]))


def filled_in(verdict: Verdict) -> str:
    """Return what the first reading as printed takes where the paper leaves it open."""
    printed = (reading for reading in verdict.readings if not reading.replaces)
    first = next(printed, None)
    return "; ".join(change.what for change in first.fills_in) if first else ""


def test_of(verdict: Verdict) -> str:
    """Return what is to be known of the test: why it is this one, and what was seen before."""
    return "; ".join(filter(None, [verdict.because, verdict.remark]))


def second_line(verdict: Verdict) -> str:
    """Return the evidence of the second line, with the change and its ground; empty without one."""
    reading = verdict.otherwise
    if reading is None:
        return ""
    grounds = ", ".join(dict.fromkeys(_ground(change) for change in reading.replaces))
    parts = [f"{reading.measured} if {reading.how} ({grounds})", reading.lack]
    return "; ".join(filter(None, parts))


def _ground(change: Change) -> str:
    if change.tried == 1 and change.ground != "search":
        return change.ground
    part = f"{change.part} in it" if change.part else "this item not in it"
    return f"found by search among {change.tried}, {part}"


def word_of(verdict: Verdict) -> str:
    """Return the word of the second line; empty without one."""
    return "" if verdict.otherwise is None else verdict.otherwise.state


def tally(verdicts: Iterable[Verdict], otherwise: bool = False) -> list[tuple[str, int]]:
    """Return the words of first lines, or of second ones, in their order, with their numbers."""
    counts = Counter(word_of(v) if otherwise else v.word for v in verdicts)
    return [(word, counts[word]) for word in WORDS if counts[word]]


def count_words(verdicts: Iterable[Verdict], otherwise: bool = False) -> str:
    """Return how often each word occurs, as in ``1 holds, 2 fail``."""
    return ", ".join(f"{n} {form(word, n)}" for word, n in tally(verdicts, otherwise))


def form(word: str, number: int) -> str:
    """Return a word as it stands after a number."""
    return {HOLDS: "hold", FAILS: "fail"}.get(word, word) if number > 1 else word


def what_would_change(verdicts: Iterable[Verdict]) -> list[str]:
    """Return for each headline that does not hold what would decide it, or change its word."""
    said = []
    for v in headlines(verdicts):
        if v.word in (UNDECIDED, NOT_RUN) and v.why:
            said.append(f"{v.headline}: {v.why.rstrip('.')}")
        elif v.word == FAILS and v.otherwise is not None and v.otherwise.state == HOLDS:
            said.append(f"{v.headline} holds if {_clause(v.otherwise.replaces)}")
    return said

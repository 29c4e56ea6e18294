"""Write out the answers to the papers' questions, and the evidence for each verdict.

A reading is one way to run a printed item: it may fill in what the paper leaves open (``fills_in``)
and replace what the paper says (``replaces``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from fedcore.repro.verdicts.decision_rules import FAILS, HOLDS, UNDECIDED
from fedcore.repro.verdicts.verdicts import NOT_RUN, SOFTWARE, WORDS, Change, Verdict, clause

AS_PRINTED, OTHERWISE = "as printed", "otherwise"
SHORT = {UNDECIDED: "open"}  # of words, in an answer


def headlines(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts on headline claims; a paper's answer names these claims."""
    return [v for v in verdicts if v.headline and v.section != SOFTWARE]


def answer(verdicts: Iterable[Verdict]) -> str:
    """Return the answer to a paper's question, by the rule of ``docs/judging.md``.

    The question is about some or all of the headline claims. The verdicts on these claims decide
    the first words of the answer. The rest of the answer names all headline claims, grouped by
    their verdicts.

    Examples
    --------
    >>> answer([])
    'Cannot say: no headline claims are set.'
    """
    found = headlines(verdicts)
    asked = [v for v in found if not v.aside]
    if not asked:
        return "Cannot say: no headline claims are set."
    said = [
        _decided(asked),
        *_by_word(asked, ""),
        *_by_word([v for v in found if v.aside], "also "),
    ]
    return " ".join(f"{part}." for part in said)


def _decided(asked: Sequence[Verdict]) -> str:
    words = Counter(v.word for v in asked)
    hold, fail = words[HOLDS], words[FAILS]
    if 2 * (hold + fail) < len(asked):
        return "Cannot say"
    if hold == len(asked):
        return "Yes"
    if fail > hold:
        return "No, not as printed"
    if fail:
        return "Partly"
    return "Mostly" if 2 * hold > len(asked) else "Cannot say"


def _by_word(verdicts: Sequence[Verdict], before: str) -> list[str]:
    """Return one text for each verdict that occurs, with the headline claims that have it."""
    told = []
    for word in WORDS:
        names = "; ".join(v.headline for v in verdicts if v.word == word)
        if names:
            label = f"{before}{SHORT.get(word, word)}".capitalize()
            told.append(f"{label}: {names}")
    return told


def first_line(verdict: Verdict) -> str:
    """Return the evidence for a verdict, and the reason if it is undecided or not run."""
    return "; ".join(filter(None, [verdict.measured, verdict.why]))


def filled_in(verdict: Verdict) -> str:
    """Return a clause with the choices that fill in what the paper leaves open."""
    return clause(_fillings(verdict))


def _fillings(verdict: Verdict) -> tuple[Change, ...]:
    """Return what the first reading as printed fills in: the first one with empty `replaces`.

    If there is no such reading, return what the reading `Verdict.otherwise` fills in.
    """
    printed = (reading for reading in verdict.readings if not reading.replaces)
    first = next(printed, verdict.otherwise)
    return first.fills_in if first else ()


def test_of(verdict: Verdict) -> str:
    """Return the reason for an item's test, and the remark on this test."""
    return "; ".join(filter(None, [verdict.because, verdict.remark]))


def second_line(verdict: Verdict) -> str:
    """Return the evidence, the changes and their grounds (reasons) for `Verdict.otherwise`.

    The text is empty if `Verdict.otherwise` is None. The text omits choices that fill in what the
    paper leaves open if the text from the function `filled_in` names them already.
    """
    reading = verdict.otherwise
    if reading is None:
        return ""
    grounds = ", ".join(dict.fromkeys(_ground(change) for change in reading.replaces))
    own = [change for change in reading.fills_in if change not in _fillings(verdict)]
    how = clause([*reading.replaces, *own])
    parts = [f"{reading.measured} if {how} ({grounds})", reading.lack]
    return "; ".join(filter(None, parts))


def _ground(change: Change) -> str:
    if change.tried == 1 and change.ground != "search":
        return change.ground
    part = f"{change.part} in it" if change.part else "this item not in it"
    return f"found by trying {change.tried} readings, {part}"


def word_of(verdict: Verdict) -> str:
    """Return the state of the reading `Verdict.otherwise`; empty without such a reading."""
    return "" if verdict.otherwise is None else verdict.otherwise.state


def tally(verdicts: Iterable[Verdict], otherwise: bool = False) -> list[tuple[str, int]]:
    """Return pairs of a verdict and the number of items that have it.

    If `otherwise` is true, the states of `Verdict.otherwise` are counted in place of the verdicts.
    """
    counts = Counter(word_of(v) if otherwise else v.word for v in verdicts)
    return [(word, counts[word]) for word in WORDS if counts[word]]


def count_words(verdicts: Iterable[Verdict], otherwise: bool = False) -> str:
    """Return how often each verdict occurs, as in ``1 holds, 2 fail``."""
    return ", ".join(f"{n} {form(word, n)}" for word, n in tally(verdicts, otherwise))


def form(word: str, number: int) -> str:
    """Return a verdict in the singular or plural form that fits a number."""
    return {HOLDS: "hold", FAILS: "fail"}.get(word, word) if number > 1 else word


def what_would_change(verdicts: Iterable[Verdict]) -> list[str]:
    """Return what would decide or change the verdict on each headline claim that does not hold."""
    said = []
    for v in headlines(verdicts):
        if v.word in (UNDECIDED, NOT_RUN) and v.why:
            said.append(f"{v.headline}: {v.why.rstrip('.')}")
        elif v.word == FAILS and v.otherwise is not None and v.otherwise.state == HOLDS:
            said.append(f"{v.headline}: holds if {clause(v.otherwise.replaces)}")
    return said

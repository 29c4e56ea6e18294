"""Simulates how often tests of papers' printed results are wrong, and writes it to docs/judging.md.

An item is a printed result of a paper, and its word (verdict) is holds, fails or undecided. Test A
asks in how many runs the result is seen. Test B compares a printed number with the numbers of runs.
The tests judge each simulated stream of runs at each of their looks (certain numbers of runs),
until it holds or fails. The numbers in runs are normal, or follow Student's t-distribution with
three degrees of freedom and the same standard deviation.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from readme_verdicts import between_comments

from fedcore.reports import tables
from fedcore.repro.verdicts.decision_rules import (
    FAILS,
    HEADLINE,
    HOLDS,
    LOOKS,
    UNDECIDED,
    USUAL,
    Demand,
    judge_jointly,
    judge_number,
    judge_runs,
    pooled_deviation,
    weigh,
)

PAGE = Path(__file__).parents[1] / "docs" / "judging.md"
START = "<!-- `python tools/error_rates.py` writes what follows, to the next comment -->"
END = "<!-- end of what `python tools/error_rates.py` writes -->"
STREAMS = 4000  # a rate of 3 % is then known to 0.3 %
FEWEST, LAST = 5, 200  # runs of test A: one looks after each of them
NUMBER = {"runs": 1, "theory": False, "scale": "relative", "point": 1, "reading_error": 0.0}
Draw = Callable[[tuple[int, ...]], np.ndarray]


def laws(rng: np.random.Generator) -> dict[str, Draw]:
    """Return functions that draw numbers with mean 0 and standard deviation 1, by distribution."""
    return {
        "normal": lambda shape: rng.standard_normal(shape),
        "t₃": lambda shape: rng.standard_t(3, shape) / np.sqrt(3),
    }


def shares(states: np.ndarray) -> tuple[float, float]:
    """Return the share of streams that hold, and the share of streams that fail."""
    return float(np.mean(states == HOLDS)), float(np.mean(states == FAILS))


def runs_words(
    agree: np.ndarray, demand: Demand = USUAL, q: float = 0.5, step: int = 1
) -> np.ndarray:
    """Return test A's first verdict on each stream; `agree` has the shape (streams, runs)."""
    states = np.full(len(agree), UNDECIDED, dtype=object)
    for n in range(FEWEST * step, agree.shape[1] + 1, step):
        weights = np.array([weigh(k, n, q) for k in range(n + 1)])
        above, below = weights[agree[:, :n].sum(axis=1).astype(int)].T
        open_ = states == UNDECIDED
        states[open_ & (above >= demand.holds)] = HOLDS
        states[open_ & (states == UNDECIDED) & (below >= demand.fails)] = FAILS
    return states


def number_words(
    printed: np.ndarray,
    ours: np.ndarray,
    given: Mapping[str, Any],
    demand: Demand = USUAL,
    pooled: tuple[np.ndarray, int] | None = None,
) -> np.ndarray:
    """Return test B's first verdict on each stream; `ours` has the shape (streams, runs)."""
    looks = [look for look in LOOKS if look <= ours.shape[1]] or [ours.shape[1]]
    states = []
    for i, (x, values) in enumerate(zip(printed, ours, strict=True)):
        spread = None if pooled is None else (float(pooled[0][i]), pooled[1])
        for look in looks:
            test = {**NUMBER, **given, "of": float(x)}
            state = judge_number(list(values[:look]), test, demand, spread).state
            if state != UNDECIDED:
                break
        states.append(state)
    return np.array(states, dtype=object)


def of_runs(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield the table rows for test A."""

    def agree(share: float, runs: int = LAST) -> np.ndarray:
        return rng.random((STREAMS, runs)) < share

    for name, demand in (("", USUAL), (", headline", HEADLINE)):
        holds, fails = shares(runs_words(agree(0.5), demand))
        yield line(f"A, a look after each of 5 to 200 runs{name}; truth ½", "any", holds, fails)
    for share in (0.9, 0.8, 0.7, 0.6):
        holds, fails = shares(runs_words(agree(share)))
        yield line(f"A, truth {share}", "any", None, fails, holds)
    holds, fails = shares(runs_words(agree(0.8), q=0.8))
    yield line("A, “with probability 0.8”; truth 0.8", "any", holds, fails)
    points = [agree(share, 50) for share in (0.9, 0.7, 0.3, 0.1)]
    pooled = np.stack(points, axis=2).reshape(STREAMS, -1)
    holds, fails = shares(runs_words(pooled, step=4))
    yield line("A, four points pooled; truths 0.9, 0.7, 0.3, 0.1", "any", holds, fails)
    every = []
    for stream in rng.random((STREAMS, 4, 20)) < 0.5:
        points_of = [[float(one) for one in point] for point in stream]
        every.append(judge_runs(points_of, {"every": True}).state)
    holds, fails = shares(np.array(every, dtype=object))
    yield line("A, “always” on four points of 20 runs; truth ½", "any", holds, fails)
    yield always_line(rng.spawn(1)[0])
    searched = USUAL._replace(searched=20)
    best = np.array([runs_words(agree(0.5, 60), searched) for _ in range(20)])
    wrong = float(np.mean((best == HOLDS).any(axis=0)))
    yield line("A, the best of 20 readings; truth ½", "any", wrong, None)


def always_line(rng: np.random.Generator) -> dict[str, Any]:
    """Return the row for "always" on four points, which is false at one of them."""
    states = []
    for stream in rng.random((STREAMS // 4, 4, 20)) < np.array([0.9, 0.9, 0.9, 0.1])[:, None]:
        for n in range(FEWEST, stream.shape[1] + 1):
            points = [[float(one) for one in point[:n]] for point in stream]
            state = judge_runs(points, {"every": True}).state
            if state != UNDECIDED:
                break
        states.append(state)
    holds, _ = shares(np.array(states, dtype=object))
    return line("A, “always”, looks at 5 to 20 runs; truths 0.9, 0.9, 0.9, 0.1", "any", holds, None)


def of_numbers(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield the table rows for test B."""
    for law, draw in laws(rng).items():

        def words(
            spread: float, runs: int, low: float = 1.0, high: float = 1.0, n: int = LOOKS[-1],
            demand: Demand = USUAL, draw: Draw = draw, **given: Any,
        ) -> tuple[float, float]:  # fmt: skip
            """Return the shares that hold and fail; printed runs have mean `low`, ours `high`."""
            printed = low + spread * low * draw((STREAMS, runs)).mean(axis=1)
            ours = high + spread * high * draw((STREAMS, n))
            return shares(number_words(printed, ours, {"runs": runs, **given}, demand))

        for spread in (0.05, 0.1, 0.2):
            for runs in (1, 5):
                wrong = max(words(spread, runs, 1.5, 1.0)[0], words(spread, runs, 1.0, 1.5)[0])
                right, failing = words(spread, runs)
                name = f"B, spread {100 * spread:.0f} %, R = {runs}; wrong by half"
                yield line(name, law, wrong, failing, right)
        right, failing = words(0.1, 1, demand=HEADLINE)
        wrong = max(words(0.1, 1, *pair, demand=HEADLINE)[0] for pair in ((1.5, 1.0), (1.0, 1.5)))
        yield line("B, headline, spread 10 %, R = 1; wrong by half", law, wrong, failing, right)
        yield pooled_line(draw, law)
        for scale, center, spread, off in (
            ("accuracy", 80.0, 1.0, 6.0),
            ("exponent", 1.0, 0.1, 0.5),
        ):
            ours = center + spread * draw((STREAMS, LOOKS[-1]))
            printed = center + spread * draw((STREAMS,))
            right, failing = shares(number_words(printed, ours, {"scale": scale}))
            wrong = shares(number_words(printed + off, ours, {"scale": scale}))[0]
            name = f"B, {scale}, spread {spread:g}; wrong by {off:g}"
            yield line(name, law, wrong, failing, right)
        yield jointly_line(draw, law, 6, False)
        yield jointly_line(draw, law, 50, True)


def pooled_line(draw: Draw, law: str) -> dict[str, Any]:
    """Return the row for test B with three runs, and a spread pooled over six groups of runs."""
    found = {}
    for low, high in ((1.0, 1.0), (1.5, 1.0), (1.0, 1.5)):
        groups = 0.1 * draw((STREAMS, 6, 3))
        spreads = [pooled_deviation(list(map(list, rows))) for rows in groups]
        deviations = np.array([high * found_[0] for found_ in spreads if found_ is not None])
        printed = low + 0.1 * low * draw((STREAMS,))
        ours = high + 0.1 * high * draw((STREAMS, 3))
        found[low, high] = shares(number_words(printed, ours, {}, pooled=(deviations, 12)))
    wrong = max(found[1.5, 1.0][0], found[1.0, 1.5][0])
    right, failing = found[1.0, 1.0]
    return line("B, three runs, pooled spread 10 %; wrong by half", law, wrong, failing, right)


def jointly_line(draw: Draw, law: str, cells: int, panel: bool) -> dict[str, Any]:
    """Return the row for test B on `cells` numbers that are judged jointly, with spread 5 %."""
    streams, demand = STREAMS // 4, USUAL._replace(cells=cells)

    def words(off: np.ndarray) -> tuple[float, float]:
        states = []
        for _ in range(streams):
            printed = off * (1 + 0.05 * draw((cells,)))
            ours = 1 + 0.05 * draw((cells, 20))
            for look in (5, 10, 20):
                found = {
                    str(i): judge_number(list(ours[i, :look]), {**NUMBER, "of": float(x)}, demand)
                    for i, x in enumerate(printed)
                }
                state = judge_jointly(found, panel).state
                if state != UNDECIDED:
                    break
            states.append(state)
        return shares(np.array(states, dtype=object))

    right, failing = words(np.ones(cells))
    off = np.ones(cells)
    off[: max(1, cells // 5)] = 1.5
    what = f"panel of {cells} points" if panel else f"row of {cells} cells"
    wrong = words(off)[0]
    return line(f"B, {what}, spread 5 %; one in five wrong by half", law, wrong, failing, right)


def line(
    test: str, law: str, holds: float | None, fails: float | None, right: float | None = None
) -> dict[str, Any]:
    """Return a row of the table, with rates in per cent."""
    given = {"wrong holds": holds, "wrong fails": fails, "right holds": right}
    shown = {name: "" if rate is None else f"{100 * rate:.1f} %" for name, rate in given.items()}
    return {"test": test, "law of a run": law, **shown}


def main() -> None:
    """Simulate all rows, and write the table between two comments of docs/judging.md."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    rng = np.random.default_rng(20261129)
    table = tables.markdown([*of_runs(rng), *of_numbers(rng)])
    page = PAGE.read_text(encoding="utf-8")
    text = between_comments(page, table, PAGE.name, START, END)
    PAGE.write_text(text, encoding="utf-8", newline="\n")
    print(table, end="")


if __name__ == "__main__":
    main()

"""Reports of the outcomes of checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from fedcore.errors import last_line

AGAIN = "for the same reason as above"


class CheckFailed(AssertionError):
    """At least one check has failed; the message is the text of the `Report`."""


class Skipped(Exception):
    """A check does not apply; the message says why."""


class Unsaid(Skipped):
    """A check is skipped because it needs an entry that the algorithm's `Case` does not have."""


class Finding(NamedTuple):
    """Outcome of one check.

    Attributes
    ----------
    check : str
        First line of the check's docstring.
    outcome : {"passed", "failed", "skipped"}
    said : str
        Reason why the check failed or was skipped.
    """

    check: str
    outcome: str
    said: str


@dataclass(frozen=True)
class Report:
    """Outcomes of all checks.

    Attributes
    ----------
    name : str
        Name of the checked object.
    findings : list of Finding
    """

    name: str
    findings: list[Finding]

    @property
    def failed(self) -> list[Finding]:
        """Return the failed checks."""
        return [finding for finding in self.findings if finding.outcome == "failed"]

    def __str__(self) -> str:
        """Return one line for each check, and a summary; a failure's reason is told only once."""
        lines, told = list[str](), set[str]()
        for check, outcome, said in self.findings:
            reason = said.partition("\n")[0]
            if reason in told:
                said = AGAIN
            elif outcome == "failed":
                told.add(reason)
            lines += [f"{outcome:8}{check}", *(f"        {line}" for line in said.splitlines())]
        counts = Counter(finding.outcome for finding in self.findings)
        sums = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items()))
        return "\n".join([*lines, f"{self.name}: {sums}"])


def examine(check: Callable[[Any], None], subject: Any, file: str | None) -> Finding:
    """Run a check on a subject and return the outcome.

    If the check raises an error other than an AssertionError with a message, the outcome names the
    last traceback line in `file`, which is the file of the checked code.
    """
    sentence = (check.__doc__ or "").partition("\n")[0]
    try:
        check(subject)
    except Skipped as reason:
        return Finding(sentence, "skipped", str(reason))
    except Exception as error:  # whatever another package's code raises
        lines = [str(error).strip()]
        if not (isinstance(error, AssertionError) and str(error)):
            lines = [f"{type(error).__name__}: {error}"]
            if at := last_line(error, file):
                lines.append(f"at {at.filename}, line {at.lineno}: {at.line}")
        return Finding(sentence, "failed", "\n".join([*lines, *getattr(error, "__notes__", ())]))
    return Finding(sentence, "passed", "")

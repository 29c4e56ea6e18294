"""What the checks found."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fedcore.words import counted

AGAIN = "for the same reason as above"


class CheckFailed(AssertionError):
    """A check has failed; the message names all that have."""


class Skipped(Exception):
    """A check does not apply; the message says why."""


class Unsaid(Skipped):
    """A check needs something that the algorithm's case does not say."""


class Finding(NamedTuple):
    """Outcome of one check.

    Attributes
    ----------
    check : str
        Its sentence.
    outcome : {"passed", "failed", "skipped"}
    said : str
        Why it failed or was skipped; else empty.
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
        What was checked.
    findings : list of Finding
    """

    name: str
    findings: list[Finding]

    @property
    def failed(self) -> list[Finding]:
        """The checks that have failed."""
        return [finding for finding in self.findings if finding.outcome == "failed"]

    def __str__(self) -> str:
        """One line for each check, and a sum below; a reason that comes again is told once."""
        lines = [
            f"{f.outcome:8}{f.check}" + "".join(f"\n        {line}" for line in said.splitlines())
            for f, said in zip(self.findings, self._told_once(self.findings), strict=True)
        ]
        counts = [
            f"{number} {word}"
            for word in ("passed", "failed", "skipped")
            if (number := sum(f.outcome == word for f in self.findings))
        ]
        return "\n".join([*lines, f"{self.name}: {', '.join(counts)}"])

    @staticmethod
    def _told_once(findings: Sequence[Finding]) -> list[str]:
        """Return why each failed or was skipped, and `AGAIN` where an earlier one did for that."""
        told: set[str] = set()
        found = []
        for finding in findings:
            reason = finding.said.partition("\n")[0]
            found.append(AGAIN if reason in told else finding.said)
            if finding.outcome == "failed":
                told.add(reason)
        return found

    def require(self) -> None:
        """Raise `CheckFailed` if a check has failed."""
        if self.failed:
            reasons = zip(self.failed, self._told_once(self.failed), strict=True)
            said = "\n".join(f"- {finding.check}: {reason}" for finding, reason in reasons)
            raise CheckFailed(f"{self.name}: {counted(len(self.failed), 'check')} failed\n{said}")


def examine(
    name: str,
    checks: Mapping[str, Callable[[Any], None]],
    subject: Any,
    file: str | None = None,
) -> Report:
    """Run checks on a subject, every one whatever the others find.

    `file` holds the code under check: an error says at which of its lines it was raised.
    """
    found = []
    for check in checks.values():
        outcome, said = "passed", ""
        try:
            check(subject)
        except Skipped as reason:
            outcome, said = "skipped", str(reason)
        except Exception as error:  # whatever another package's code raises
            plain = isinstance(error, AssertionError) and str(error)
            said = str(error).strip() if plain else f"{type(error).__name__}: {error}"
            place = [] if plain else _place(error, file)
            said = "\n".join([said, *place, *getattr(error, "__notes__", ())])
            outcome = "failed"
        found.append(Finding((check.__doc__ or "").partition("\n")[0], outcome, said))
    return Report(name, found)


def _place(error: Exception, file: str | None) -> list[str]:
    """Return the last line of `file` that an error has passed, if there is one."""
    lines = [at for at in traceback.extract_tb(error.__traceback__) if at.filename == file]
    return [f"at {at.filename}, line {at.lineno}: {at.line}" for at in lines[-1:]]

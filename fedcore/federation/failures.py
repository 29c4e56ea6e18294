"""An error of one process, told to another one, which raises it again."""

from __future__ import annotations

import traceback
from typing import NamedTuple

from fedcore.client_steps.values import installed
from fedcore.errors import FedcoreError, RefusedError


class Failure(NamedTuple):
    """What has failed elsewhere.

    Attributes
    ----------
    at : int
        How many calls came before in the order in which one process would have made them.
    kind : tuple of str
        Module and name of the error's class.
    said : str
    trace : str
        Where it was raised; empty for an error that a user can cause.
    """

    at: int
    kind: tuple[str, str]
    said: str
    trace: str = ""

    @classmethod
    def of(cls, error: Exception, at: int = 0) -> Failure:
        """Describe an error."""
        kind = type(error).__module__, type(error).__qualname__
        if isinstance(error, FedcoreError):
            return cls(at, kind, str(error))
        said = str(error.args[0]) if len(error.args) == 1 else str(error)
        return cls(at, kind, said, "".join(traceback.format_exception(error)))

    def error(self, where: str) -> Exception:
        """Return an error of the same class, or a RuntimeError if there is none here."""
        try:
            kind = installed(*self.kind)
            made = kind(self.said) if issubclass(kind, Exception) else None
        except (RefusedError, TypeError):
            made = None
        found = made or RuntimeError(f"{self.kind[1]}: {self.said}")
        if self.trace:
            found.add_note(f"Raised {where}:\n{self.trace}")
        return found

"""How tables are read, and a table that was read."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from scipy.sparse import issparse

from fedcore.arrays import missing
from fedcore.errors import Advice, InputError, TableError
from fedcore.user_tables.columns import as_values
from fedcore.user_tables.names import clean
from fedcore.validation import check_annotated, one_of, whole

EMPTY_TABLE = " has no numbers, it is empty: leave it out"


@dataclass(frozen=True)
class Reading:
    """How tables are read.

    Attributes
    ----------
    apart : collection of str
        Columns to keep apart from the matrix. In an NPZ file these are vectors that are stored with
        the matrix.
    columns : collection of str
        Features to take; by default all.
    without : collection of str
        Columns to leave out of all files that have them.
    missing : {'refuse', 'drop'}, optional
        Whether a row with a missing value is refused or left out; by default refused.
    header : bool, optional
        Whether the first line of a CSV file has the names, by default guessed; in an NPZ file,
        whether its names are used.
    skip_lines : int
        Number of lines in CSV files above the names, or above the numbers.
    encoding : str, optional
        Encoding of CSV files; by default UTF-8 or UTF-16.
    delimiter : str, optional
        Sign that separates the columns of all CSV files; by default it is found in each file.
    decimal : {'.', ','}, optional
        Decimal point of CSV files; the other sign then separates thousands. By default it is found
        in each file.
    na : collection of str
        Texts that stand for a missing value in a CSV file, in addition to `numbers.EMPTY`, and
        numbers that do so in any table.
    matrix : str, optional
        Name of the array that is the matrix, in NPZ files with several arrays.
    zero_based : bool
        Whether the columns of LIBSVM files are numbered from 0.
    """

    apart: Sequence[str] = ()
    columns: Sequence[str] | None = None
    without: Sequence[str] = ()
    missing: Annotated[str, one_of(("refuse", "drop"))] | None = None
    header: bool | None = None
    skip_lines: Annotated[int, whole(0)] = 0
    encoding: str | None = None
    delimiter: str | None = None
    decimal: Annotated[str, one_of((".", ","))] | None = None
    na: Sequence[str] = ()
    matrix: str | None = None
    zero_based: bool = False

    def __post_init__(self) -> None:
        for name in ("apart", "columns", "without", "na"):
            if isinstance(one := getattr(self, name), str):
                object.__setattr__(self, name, (one,))
            if name != "na" and getattr(self, name):  # as the names of tables are read
                object.__setattr__(self, name, [*map(clean, getattr(self, name))])
        check_annotated(Reading, vars(self))
        sign = self.delimiter
        if sign not in (None, "", "\\t") and (
            len(sign) != 1 or not sign.isascii() or sign.isalnum() or sign in '"\r\n\0'
        ):
            raise InputError(
                f"delimiter is one sign, no letter or digit, got {sign!r}: name another"
            )
        try:
            "a".encode(self.encoding or "utf-8")
        except (LookupError, ValueError) as error:
            says = f"{self.encoding!r} is no encoding of texts that Python knows"
            raise InputError(f"{says}: take one such as utf-8, latin1 or cp1252") from error

    @property
    def asked(self) -> list[str]:
        """The columns that options name."""
        return [*self.apart, *(self.columns or ()), *self.without]

    def keeps(self, name: str) -> bool:
        """Whether a column is wanted as a feature."""
        wanted = self.columns is None or name in self.columns
        return wanted and name not in self.without and name not in self.apart


@dataclass
class Table:
    """A file's numbers.

    Attributes
    ----------
    path : str
    labels : list of str, or range
        Names of the columns of `x`; their numbers, if the file has no names.
    x : ndarray or scipy.sparse.csr_array of shape (rows, columns), float64 or float32
        The matrix; a list of columns until they are known to be numbers.
    apart : dict of str to ndarray of shape (rows,)
        The columns that were asked for apart; of a CSV file as text. Before that selection, the
        vectors of an NPZ or LIBSVM file, with None for a vector that nobody has asked for.
    guesses : list of Advice
        Each guess that was made, and the option against it.
    index : collection of str
        Columns in which pandas has stored its index.
    place : callable or None
        Function that says where a row of the file is; by default, the row's number says so.
    open_ended : bool
        Whether further columns would hold only zeros, as in a LIBSVM file.
    """

    path: str
    labels: Any
    x: Any
    apart: dict[str, Any] = field(default_factory=dict)
    guesses: list[Advice] = field(default_factory=list)
    index: Collection[str] = ()
    place: Callable[[int], str] | None = None
    open_ended: bool = False

    def __post_init__(self) -> None:
        if not self.bare:
            seen = [*map(clean, self.labels)]
            other = [f"{old!a} as {new!a}" for old, new in zip(self.labels, seen, strict=True)
                     if old != new]  # fmt: skip
            if other:
                self.tell(f"takes {', '.join(other)}, which look the same")
            self.labels = seen

    def tell(self, what: str, *others: str, **option: Any) -> None:
        """Note a guess about this file and `others`, and the option against this guess."""
        more = ", unless told otherwise" * bool(option)
        self.guesses.append(Advice(f"{', '.join([self.path, *others])}: {what}{more}", option))

    @property
    def names(self) -> list[str]:
        """The labels as text."""
        return [*map(str, self.labels)]

    @property
    def bare(self) -> bool:
        """Whether the columns have no names."""
        return not isinstance(next(iter(self.labels), ""), str)

    def known(self, names: Iterable[str]) -> list[Any]:
        """Return the labels of those names that are columns of this table."""
        if self.bare:
            return [int(n) for n in names if re.fullmatch(r"\d{1,18}", n) and int(n) in self.labels]
        return [*filter({*self.labels}.__contains__, names)]

    def columns(self, labels: Sequence[Any]) -> Any:
        """Return the columns with these labels."""
        if labels == self.labels:
            return self.x
        at = {label: i for i, label in enumerate(self.labels)}
        if isinstance(self.x, list):
            return [self.x[at[label]] for label in labels]
        return self.x[:, [at[label] for label in labels]]

    def column(self, name: str) -> np.ndarray:
        """Return one of the columns, or a vector that is stored with them."""
        cells = self.apart[name] if name in self.apart else self.columns(self.known([name]))
        return as_values(cells[0] if isinstance(cells, list) else cells)

    def where(self, row: int) -> str:
        """Return in words where a row is."""
        return f"{self.path}, {self.named(row)}"

    def named(self, row: int) -> str:
        """Return the name of a row in its file, such as its line."""
        return self.place(row) if self.place else f"row {row}"

    def holes(self) -> dict[str, np.ndarray]:
        """Return where each column lacks a number, and each column kept apart lacks a value."""
        dense = {} if issparse(self.x) else zip(self.names, ~np.isfinite(self.x).T, strict=True)
        return {**dict(dense), **{name: missing(values) for name, values in self.apart.items()}}

    def incomplete(self) -> np.ndarray:
        """Return which rows lack a value."""
        return np.logical_or.reduce([np.zeros(self.x.shape[0], bool), *self.holes().values()])


def fault(path: str, says: str, *ways: tuple[Any, ...], **more: Any) -> TableError:
    """Return an error about a file; `ways` are parameters of `Advice`."""
    advice = [Advice(*way) for way in ways]
    return TableError(f"{path}{says}", file=path, advice=advice, **more)

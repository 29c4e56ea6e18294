"""Options for reading tables, and the tables that are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Annotated, Any

import numpy as np
from scipy.sparse import issparse

from fedcore.arrays import missing
from fedcore.errors import Advice, InputError, TableError
from fedcore.user_tables.columns import as_values
from fedcore.user_tables.names import clean
from fedcore.user_tables.numbers import written
from fedcore.validation import FLAG, TEXT, check_annotated, one_of, whole

EMPTY_TABLE = " has no numbers, it is empty: leave it out"


@dataclass(frozen=True)
class Reading:
    """Options for reading tables.

    Attributes
    ----------
    apart : str, number, or collection of them
        Columns to keep apart from the matrix, such as labels. For an NPZ file, `apart` names
        vectors that are stored beside the matrix.
    columns : str, number, or collection of them
        Columns to take as features (default: all).
    without : str, number, or collection of them
        Columns to leave out of all files that have them.
    missing : {'refuse', 'drop'}, optional
        Whether a row with a missing value is an error (default) or is dropped.
    header : bool, optional
        Whether the first line of a CSV file has the column names (default: guessed). For an NPZ
        file, ``header=False`` ignores the stored column names.
    skip_lines : int
        Number of lines to skip at the top of each CSV file.
    encoding : str, optional
        Encoding of the CSV files, by default UTF-8 or UTF-16.
    delimiter : str, optional
        Column separator of all CSV files (default: detected in each file).
    decimal : {'.', ','}, optional
        Decimal point of the CSV files (default: detected in each file). The sign that is not the
        decimal point separates thousands.
    na : str, number, or collection of them
        Texts that mark a missing value in a CSV file, in addition to `numbers.EMPTY`. Numbers in
        `na` mark missing values in all file formats.
    matrix : str, optional
        Name of the matrix in an NPZ file with several arrays.
    zero_based : bool
        Whether LIBSVM files number their columns from 0 instead of 1.
    """

    apart: Sequence[str] = ()
    columns: Sequence[str] | None = None
    without: Sequence[str] = ()
    missing: Annotated[str, one_of(("refuse", "drop"))] | None = None
    header: Annotated[bool, FLAG] | None = None
    skip_lines: Annotated[int, whole(0)] = 0
    encoding: Annotated[str, TEXT] | None = None
    delimiter: Annotated[str, TEXT] | None = None
    decimal: Annotated[str, one_of((".", ","))] | None = None
    na: Sequence[str] = ()
    matrix: Annotated[str, TEXT] | None = None
    zero_based: Annotated[bool, FLAG] = False

    def __post_init__(self) -> None:
        for name in ("apart", "columns", "without", "na"):
            if name != "columns" or self.columns is not None:
                texts = _texts(name, getattr(self, name))
                # names as those of tables are read
                object.__setattr__(self, name, texts if name == "na" else [*map(clean, texts)])
        check_annotated(Reading, vars(self))
        sign = self.delimiter
        if sign not in (None, "", "\\t") and (
            len(sign) != 1 or not sign.isascii() or sign.isalnum() or sign in '"\r\n\0'
        ):
            raise InputError(
                f"delimiter must be one sign, not a letter or digit, got {sign!r}: name another"
            )
        try:
            "a".encode(self.encoding or "utf-8")
        except (LookupError, ValueError) as error:
            says = f"{self.encoding!r} is no encoding of texts that Python knows"
            raise InputError(f"{says}: take one such as utf-8, latin1 or cp1252") from error

    @property
    def asked(self) -> list[str]:
        """Names of the columns in `apart`, `columns` and `without`."""
        return [*self.apart, *(self.columns or ()), *self.without]

    def keeps(self, name: str) -> bool:
        """Return whether the options ask for the column `name` as a feature.

        Parameters
        ----------
        name : str
            Name of a column.
        """
        wanted = self.columns is None or name in self.columns
        return wanted and name not in self.without and name not in self.apart


def _texts(option: str, given: Any) -> list[str]:
    """Return the texts that an option lists; a single text or number is a list of one."""
    if isinstance(given, np.ndarray):
        given = given.ravel().tolist()
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        given = [given]
    texts = []
    for one in given:
        if isinstance(one, Real) and not isinstance(one, bool):
            texts.append(written(one))
        elif isinstance(one, str):
            texts.append(one)
        else:
            raise InputError(f"{option} lists texts or numbers, got {one!r}: write it as a text")
    return texts


@dataclass
class Table:
    """Matrix, column labels and stored vectors of one file.

    Attributes
    ----------
    path : str
    labels : list of str, or range
        Names of the columns of `x`, or their numbers if the file has no names.
    x : ndarray or scipy.sparse.csr_array of shape (rows, columns), float64 or float32
        Matrix of the features. Before the columns are checked, `x` may be a list of columns.
    apart : dict of str to ndarray of shape (rows,)
        Columns that `Reading.apart` names; columns of a CSV file are texts. Before the columns are
        selected, `apart` has all vectors of an NPZ or LIBSVM file. A vector of numbers in an NPZ
        file becomes None if `Reading.apart` does not name it.
    guesses : list of Advice
        Guesses that were made about the file, and the options that override them.
    index : collection of str
        Columns in which pandas has stored its index.
    place : callable or None
        Function that returns a row's place as text (default: the row's number).
    open_ended : bool
        Whether further columns would hold only zeros, as in a LIBSVM file.
    left_out : dict of str to ndarray
        Values of the columns in `apart`, in the rows that were left out.
    """

    path: str
    labels: Any
    x: Any
    apart: dict[str, Any] = field(default_factory=dict)
    guesses: list[Advice] = field(default_factory=list)
    index: Collection[str] = ()
    place: Callable[[int], str] | None = None
    open_ended: bool = False
    left_out: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.bare:
            seen = [*map(clean, self.labels)]
            other = [f"{old!a} as {new!a}" for old, new in zip(self.labels, seen, strict=True)
                     if old != new]  # fmt: skip
            if other:
                self.tell(f"takes {', '.join(other)}, which look the same")
            self.labels = seen

    def tell(self, what: str, *others: str, **option: Any) -> None:
        """Record a guess about this file and `others`, with the option that overrides the guess.

        Parameters
        ----------
        what : str
            Description of the guess.
        *others : str
            Paths of the other files that the guess concerns.
        **option
            Parameter of the user's call, with the value that overrides the guess.
        """
        more = ", unless told otherwise" * bool(option)
        self.guesses.append(Advice(f"{', '.join([self.path, *others])}: {what}{more}", option))

    @property
    def names(self) -> list[str]:
        """The column labels as text."""
        return [*map(str, self.labels)]

    @property
    def bare(self) -> bool:
        """True if the columns have no names but only numbers."""
        return not isinstance(next(iter(self.labels), ""), str)

    def known(self, names: Iterable[str]) -> list[Any]:
        """Return the labels of those columns that `names` lists.

        Parameters
        ----------
        names : iterable of str
            Names of columns, or their numbers as text if the columns have no names.
        """
        if self.bare:
            return [int(n) for n in names if re.fullmatch(r"\d{1,18}", n) and int(n) in self.labels]
        return [*filter({*self.labels}.__contains__, names)]

    def columns(self, labels: Sequence[Any]) -> Any:
        """Return the columns of `x` that `labels` lists.

        Parameters
        ----------
        labels : sequence of str or int
            Some of the table's column labels.
        """
        if labels == self.labels:
            return self.x
        at = {label: i for i, label in enumerate(self.labels)}
        if isinstance(self.x, list):
            return [self.x[at[label]] for label in labels]
        return self.x[:, [at[label] for label in labels]]

    def column(self, name: str) -> np.ndarray:
        """Return a column of `x`, or a vector in `apart`, as a NumPy vector.

        Parameters
        ----------
        name : str
            Name of the column or of the vector.
        """
        cells = self.apart[name] if name in self.apart else self.columns(self.known([name]))
        return as_values(cells[0] if isinstance(cells, list) else cells)

    def where(self, row: int) -> str:
        """Return a text that names the file and one of its rows.

        Parameters
        ----------
        row : int
            Index of the row, counted from 0.
        """
        return f"{self.path}, {self.named(row)}"

    def named(self, row: int) -> str:
        """Return a text that names a row, such as its line in the file.

        Parameters
        ----------
        row : int
            Index of the row, counted from 0.
        """
        return self.place(row) if self.place else f"row {row}"

    def holes(self) -> dict[str, np.ndarray]:
        """Return masks of the missing values in each column of `x` and `apart`, by column name."""
        dense = {} if issparse(self.x) else zip(self.names, ~np.isfinite(self.x).T, strict=True)
        return {**dict(dense), **{name: missing(values) for name, values in self.apart.items()}}

    def incomplete(self) -> np.ndarray:
        """Return a boolean mask of the rows that lack a value."""
        return np.logical_or.reduce([np.zeros(self.x.shape[0], bool), *self.holes().values()])


def fault(path: str, says: str, *ways: tuple[Any, ...], **more: Any) -> TableError:
    """Return an error about a file, with an `Advice` made from each tuple in `ways`."""
    advice = [Advice(*way) for way in ways]
    return TableError(f"{path}{says}", file=path, advice=advice, **more)

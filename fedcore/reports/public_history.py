"""`fedcore.History`: a history with a plot and a data frame.

Both are here and not in `fedcore.history`, because every cell depends on that module.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fedcore import history
from fedcore.errors import InputError
from fedcore.files import history_schema

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fedcore.runs import Result


class History(history.History):
    """Recorded repeats of one cell; see `fedcore.history` for the file and the attributes.

    Examples
    --------
    >>> import numpy as np
    >>> import fedcore
    >>> clients = [np.diag([3.0, 2.0, 1.0]), np.eye(3)]
    >>> found = fedcore.History.of(fedcore.run("block_krylov", clients, 1, rounds=2))
    >>> found["round"]
    array([[0, 1, 2]])
    """

    __repr__ = history.History.__repr__

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a history and check its seal (see `fedcore.files.hdf5`).

        Raises
        ------
        HistoryError
            When the file is missing, cut off, damaged, no history, or of another schema version.
        """
        found = super().load(path)  # made by `cls`, though its type does not say so
        assert isinstance(found, cls)
        return found

    @classmethod
    def of(cls, result: Result, algorithm: str = "") -> History:
        """Return the history of one run of `fedcore.run`, as one repeat.

        Parameters
        ----------
        result : Result
        algorithm : str, optional
            Name in the plot's legend.
        """
        arrays = {k: v for k, v in result.output.items() if isinstance(v, np.ndarray | np.generic)}
        return cls(
            {name: np.asarray(values)[None] for name, values in result.history.items()},
            {name: np.asarray(array)[None] for name, array in arrays.items()},
            {name: array[None] for name, array in result.iterates.items()},
            about={"algorithm": algorithm} if algorithm else {},
            released=result.released,
        )

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        against: Sequence[str] = (),
        metrics: Sequence[str] = (),
    ) -> Figure:
        """Draw the metrics against rounds or another column of the ledger.

        The line is the median over the repeats, and the band reaches from the smallest to the
        largest. A notebook shows the figure.

        Parameters
        ----------
        path : path-like, optional
            Where to save it, without the ending; PNG and PDF are written.
        against : str or sequence of str, optional
            ``round``, ``bytes_up``, ``bytes_down``, ``epsilon`` or ``iteration``.
        metrics : str or sequence of str, optional
            By default all.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        InputError
            For an unknown column or metric, or a history without metrics.
        """
        from fedcore.reports import comparison

        name = str(self.about.get("algorithm", "this run"))
        across, chosen = (
            [given] if isinstance(given, str) else given for given in (against, metrics)
        )
        return comparison.figure({name: self}, across, chosen, path=path)

    def to_xarray(self) -> Any:
        """Return all that the history holds as a tree of xarray, as ``open_datatree`` reads a file.

        Returns
        -------
        xarray.DataTree
            A group each of ``history``, ``iterates``, ``final``, ``reference`` and what else there
            is, with named dimensions. Missing values are NaN.

        Raises
        ------
        InputError
            When xarray is not installed.
        """
        try:
            import xarray
        except ImportError as error:
            raise InputError(
                "to_xarray needs xarray, which is not installed: pip install xarray h5netcdf"
            ) from error
        groups: dict[str, dict[str, Any]] = {}
        for group, name, array, described in self.arrays():
            attributes: dict[str, Any] = {
                "units": described.units,
                "long_name": described.long_name,
            }
            if (fill := history_schema.fill_value(group, array)) is not None:
                attributes["_FillValue"] = fill
            groups.setdefault(group, {})[name] = (described.axes, array, attributes)
        tree = {group: xarray.decode_cf(xarray.Dataset(arrays)) for group, arrays in groups.items()}
        axes = {
            name: (name, np.arange(size), {"units": "1", "long_name": text})
            for name, (size, text) in history.dimensions(self.arrays()).items()
        }
        tree["/"] = xarray.Dataset(coords=axes, attrs=self.attributes)
        return xarray.DataTree.from_dict(tree)

    def to_frame(self) -> Any:
        """Return all records as a pandas data frame, a row for each.

        Returns
        -------
        pandas.DataFrame
            ``repeat``, and the columns of the history in their units. Padding of repeats that ended
            early is left out.

        Raises
        ------
        InputError
            When pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise InputError(
                "to_frame needs pandas, which is not installed: pip install pandas; without it, "
                "history['round'] is an array of shape (repeats, records)"
            ) from error
        there = self["iteration"] >= 0
        repeat = np.broadcast_to(np.arange(self.repeats)[:, None], there.shape)
        columns = {"repeat": repeat, **self.columns}
        return pandas.DataFrame({name: values[there] for name, values in columns.items()})

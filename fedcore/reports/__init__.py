"""Present histories (the records of runs) as text, tables and figures."""

import os
from pathlib import Path

from fedcore.errors import InputError

OTHER_ENDINGS = (".svg", ".eps", ".ps", ".jpg", ".jpeg", ".tif", ".tiff")  # of images


def stem(path: str) -> str:
    """Return the path of a figure without .png or .pdf.

    Raises
    ------
    InputError
        If the path does not end in a file name, or ends in the suffix of another image format.
    """
    if os.path.basename(path) in ("", os.curdir, os.pardir):
        raise InputError(f"{path!r} names no file: add the name of the figure")
    ending = Path(path).suffix.lower()
    if ending in OTHER_ENDINGS:
        raise InputError(f"{path}: figures are saved as PNG and PDF: leave out {ending}")
    return str(Path(path).with_suffix("")) if ending in (".png", ".pdf") else path

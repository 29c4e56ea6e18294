"""Present histories as text, tables and figures."""

from pathlib import Path

from fedcore.errors import InputError

OTHER_ENDINGS = (".svg", ".eps", ".ps", ".jpg", ".jpeg", ".tif", ".tiff")  # of images


def stem(path: str) -> str:
    """Return the path of a figure without .png or .pdf; refuse the endings of other images."""
    ending = Path(path).suffix.lower()
    if ending in OTHER_ENDINGS:
        raise InputError(f"{path}: a figure is PNG and PDF: leave out {ending}")
    return str(Path(path).with_suffix("")) if ending in (".png", ".pdf") else path

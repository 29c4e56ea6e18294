"""Open pictures from files that may be damaged or hostile, with limits on their size."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from fedcore.errors import DataError, FedcoreError

if TYPE_CHECKING:
    from PIL import Image


@contextlib.contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Turn errors in reading a picture into a `DataError` that names the file and the picture."""
    try:
        yield
    except ImportError as error:
        raise FedcoreError("pictures need pillow: install it with 'pip install pillow'") from error
    except Exception as error:  # a damaged picture or archive can raise anything
        reason = " ".join(str(error).split())
        raise DataError(f"{path}: {what} cannot be read ({reason})") from error


@contextlib.contextmanager
def opened(
    content: bytes, most: int, formats: tuple[str, ...] | None = None
) -> Iterator[Image.Image]:
    """Open a picture of at most `most` pixels, in one of Pillow's `formats` (default: any)."""
    from PIL import Image

    with Image.open(io.BytesIO(content), formats=formats) as picture:
        width, height = picture.size
        if width * height > most:
            raise ValueError(
                f"it has {width} x {height} pixels, more than the {most} that are allowed"
            )
        yield picture

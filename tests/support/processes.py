"""Programs, run to their end."""

from __future__ import annotations

import subprocess
import sys
from typing import Any


def program(*words: Any, status: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program, which must end with this status; return what it printed."""
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, **options)
    assert done.returncode == status, (words, done.stdout, done.stderr)
    return done


def python(*words: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run Python in the same way."""
    return program(sys.executable, *words, **options)

"""Every history of a run keeps iterates, and xarray opens them with named dimensions."""

from __future__ import annotations

from pathlib import Path

import xarray


def require_iterates(path: Path) -> None:
    """Require iterates whose dimensions have names, and whose last one is that of the run."""
    with xarray.open_datatree(path) as tree:
        shared = tree["iterates"]["shared"]
        repeat, snapshot = shared.dims[:2]  # fewer repeats than records have: repeat_2
        assert repeat.startswith("repeat") and snapshot == "snapshot", path
        assert not [name for name in shared.dims if "phony" in str(name)], path
        kept, recorded = tree["iterates"]["iteration"], tree["history"]["iteration"]
        ends = recorded.isel(repeat=slice(kept.sizes[repeat])).max("record")
        assert kept.max("snapshot").values.tolist() == ends.values.tolist(), path
        assert shared.notnull().any(), path


def test_every_history_of_a_run_keeps_iterates(first_run):
    checkout, _ = first_run
    files = sorted(checkout.root.glob("results/tiny/histories/**/*.h5"))
    assert len(files) == 6
    for path in files:
        require_iterates(path)

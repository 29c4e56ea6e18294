"""No job of a run takes more memory than its rule asks for where nothing was measured before."""

from __future__ import annotations

import re

from fedcore.experiments import expectation

BENCHMARKS = "results/tiny/benchmarks"
# An output, and the benchmark of the job that makes it.
OUTPUTS = {
    r"results/tiny/histories/(\S+)\.h5": r"\1",
    r"data/clients/tiny/(\S+)\.h5": r"problems/\1",
    r"results/tiny/tables/tiny/ends\.tsv": "tiny/tables",
    r"results/tiny/notebooks/tiny\.ipynb": "tiny/notebook",
}


def asked(text):
    """MB that the jobs of a run asked for, by the names of their benchmarks."""
    found = {}
    for block in re.split(r"^\[.*?\] ?", text, flags=re.MULTILINE):
        output = re.search(r"^    output: .*", block, re.MULTILINE)
        mb = re.search(r"^    resources: .*\bmem_mb=(\d+)", block, re.MULTILINE)
        for pattern, name in OUTPUTS.items():
            if output and mb and (made := re.search(pattern, output[0])):
                found[made.expand(name)] = int(mb[1])
    return found


def test_no_job_takes_more_memory_than_it_asks_for(first_run):
    """In a run of everything, in which no job asks for what an earlier one has taken."""
    checkout, run = first_run
    declared, folder = asked(run.text), checkout.root / BENCHMARKS
    names = [path.relative_to(folder).with_suffix("") for path in folder.rglob("*.tsv")]
    assert sorted(declared) == sorted(map(str, names)) and len(names) > 9
    measured = {name: expectation.measured(folder / f"{name}.tsv")[1] for name in declared}
    assert all(mb > 20 for mb in measured.values())  # Python alone takes this
    assert {name: mb for name, mb in measured.items() if mb > declared[name]} == {}

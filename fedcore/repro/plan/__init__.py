"""Plan a run: find its problems and cells, and check whether their results are up to date."""

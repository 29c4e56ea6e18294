"""From the configuration to problems and cells, and whether their results are up to date."""

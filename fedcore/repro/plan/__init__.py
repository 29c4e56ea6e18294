"""From the configuration to problems and cells, and whether what is there is up to date."""

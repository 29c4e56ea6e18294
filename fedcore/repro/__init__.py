"""Reproduce the papers; only the Snakemake workflow needs this subpackage."""

"""Code that reproduces the papers and that only the Snakemake workflow needs."""

"""What the notebooks compute from histories, one module per paper; no drawing, no files."""

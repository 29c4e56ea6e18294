"""Computations from histories for tables and notebooks, one module per paper; no drawing."""

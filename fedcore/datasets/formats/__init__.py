"""Readers of file formats, one module for each."""

"""Readers of file formats, one module each."""

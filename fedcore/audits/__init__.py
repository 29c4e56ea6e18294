"""Attacks that bound from below what a server learns from transcripts and outputs."""

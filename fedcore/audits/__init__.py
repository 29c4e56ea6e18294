"""Attacks that show how much, at least, a server can learn from transcripts and outputs."""

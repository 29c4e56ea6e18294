"""Attacks that show how much, at least, a server can learn from a run's messages and results."""

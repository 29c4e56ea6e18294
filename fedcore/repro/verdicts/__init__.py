"""From tables to verdicts on what is printed."""

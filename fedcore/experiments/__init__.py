"""From the description of a cell to its history: problems, repeats, tuning, code."""

"""From histories to verdicts: tables, figures, and what came out of every published value."""

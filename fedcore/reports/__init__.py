"""From histories to verdicts: tables, figures, and a verdict on every printed item."""

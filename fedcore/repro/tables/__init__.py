"""From histories to the rows of tables."""

"""Compare measured tables with what papers print, and give verdicts."""

"""From a run's results to its pages."""

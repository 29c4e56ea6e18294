"""Read the configuration files: a run's settings, and each paper's experiments and claims."""

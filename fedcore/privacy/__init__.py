"""Differential privacy, what a release costs: events, mechanisms, noise, accounting."""

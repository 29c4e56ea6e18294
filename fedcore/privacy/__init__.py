"""Differential privacy: mechanisms, their noise, the events they charge, and accounting."""

"""Differential privacy: mechanisms, the events they charge, accounting and calibration of noise."""

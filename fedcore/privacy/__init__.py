"""Differential privacy: mechanisms, privacy events, accounting, and calibration of noise."""

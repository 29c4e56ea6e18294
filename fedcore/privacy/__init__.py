"""Differential privacy: events, mechanisms, accounting; and what a server can learn of data."""

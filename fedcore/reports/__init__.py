"""Histories as text, figures and data frames."""

"""Present histories as text, tables and figures."""

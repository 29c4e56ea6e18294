"""Attacks on transcripts and outputs, which bound from below how much a server learns."""

"""Audits: what a server learns, bounded from below by attacks on transcripts and outputs."""

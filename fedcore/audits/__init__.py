"""Audits: attacks on transcripts and outputs show at least how much a server learns."""

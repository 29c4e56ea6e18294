"""Configuration files: YAML without surprises, JSON schemas, and what a paper prints."""

"""Configuration files: strict YAML, JSON schemas, short forms and published values."""

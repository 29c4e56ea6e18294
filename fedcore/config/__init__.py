"""Configuration files: strict YAML, JSON schemas, short forms and claims of papers."""

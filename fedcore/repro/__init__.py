"""The reproduction: what the workflow needs and the library does not."""

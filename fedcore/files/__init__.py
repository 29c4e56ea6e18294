"""Files: written whole or not at all, with seals and checksums."""

"""Problems: the clients' samples, the answers to compare with, and their files."""

STATUSES = ("official", "rebuilt", "surrogate", "synthetic", "own")  # origin of the samples

"""Problems: the clients' samples, the answers to compare with, and their files."""

# Origin of the samples. "official content": the published records, in files of another form.
STATUSES = ("official", "official content", "rebuilt", "surrogate", "synthetic", "own")

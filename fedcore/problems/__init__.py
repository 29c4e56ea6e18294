"""Problems, which consist of the clients' samples and exact answers, and their files."""

# Origin of the samples. "official content": the published records, in files of another form.
STATUSES = ("official", "official content", "rebuilt", "surrogate", "synthetic", "own")

"""Problems (the clients' samples and the exact answer) and the files that store them."""

# Origin of the samples. "official content": the published records, in files of another form.
STATUSES = ("official", "official content", "rebuilt", "surrogate", "synthetic", "own")

"""Problems: the clients' samples, what is known of them, and the files that hold both."""

STATUSES = ("official", "rebuilt", "surrogate", "synthetic")  # where the samples come from

"""One algorithm, one data set and one measure for fedcore, from outside of it."""

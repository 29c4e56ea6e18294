"""Make the tables of a paper from the histories of its runs."""

"""Engines, which run client steps and return the replies, in one process or over MPI."""

"""Engines, which run client steps and return their replies: in one process, or over MPI."""

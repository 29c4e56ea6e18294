"""Engines, which run client steps (functions at the clients) in one process or over MPI."""

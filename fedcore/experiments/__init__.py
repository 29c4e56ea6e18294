"""Run experiments: make the clients' data, tune parameters, and run each method several times."""

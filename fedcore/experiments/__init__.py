"""Run the cells of experiments: make problems, tune parameters, and repeat runs."""

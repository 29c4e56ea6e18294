"""Client steps, solvers, convergence tests and privacy budgets that several algorithms share."""

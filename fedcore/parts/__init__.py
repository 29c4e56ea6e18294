"""Client steps, starts, solvers, convergence tests and budgets that several algorithms share."""

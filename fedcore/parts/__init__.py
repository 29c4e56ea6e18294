"""Code that several algorithms share: client steps, starts, solvers, stopping tests, budgets."""

"""What several algorithms share: client steps, starts, solvers, tests, budgets and mechanisms."""

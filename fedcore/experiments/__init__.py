"""From configuration files to histories: the plan, problems, cells and jobs."""

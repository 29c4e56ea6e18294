"""What carries orders to clients: in one process, or over MPI."""

"""What runs the steps of clients and brings their replies back: in one process, or over MPI."""

"""What a server can learn about its clients' data."""

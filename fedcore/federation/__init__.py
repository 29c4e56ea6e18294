"""Server and clients: their protocol, the ledger that counts traffic, and the engines."""

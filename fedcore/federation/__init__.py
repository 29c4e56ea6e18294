"""The protocol: a server, clients with a state, a ledger, and ways to execute their steps."""

"""The protocol: server, clients with state, ledger of messages, sides of the clients, engines."""

"""The protocol: server, clients with state, ledger of messages, client sides, engines."""

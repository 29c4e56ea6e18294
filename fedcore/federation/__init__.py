"""The protocol: server, clients with state, ledger of messages, execution of client steps."""

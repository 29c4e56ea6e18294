"""The protocol between a server and its clients, with a ledger of messages and with engines."""

"""The protocol between a server and its clients, the ledger of messages, and the engines."""

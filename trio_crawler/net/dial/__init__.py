"""Names, addresses and sockets: how a connection to a server is made."""

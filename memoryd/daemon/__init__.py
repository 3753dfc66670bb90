"""One process serves every agent of a user over a unix socket.  Its names load when first used."""

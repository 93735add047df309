"""A steady flow of datagrams: see README.md."""

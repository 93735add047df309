"""TCP over one network or the other, a connection each in turn."""

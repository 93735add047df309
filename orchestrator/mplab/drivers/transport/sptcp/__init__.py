"""TCP over the default route, like a phone without Multipath TCP."""

"""TCP over the default route, as a phone without Multipath TCP has it."""

"""A run: its plan, its directory, its cells, and what is done around them."""

"""A social network's origin: see README.md."""

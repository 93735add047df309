"""A social network: see README.md."""

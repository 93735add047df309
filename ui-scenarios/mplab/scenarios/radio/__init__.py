"""Radio: see README.md."""

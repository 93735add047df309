"""Web pages: see README.md."""

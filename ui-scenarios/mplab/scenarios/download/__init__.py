"""File downloads: see README.md."""

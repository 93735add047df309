"""A file store's origin: see README.md."""

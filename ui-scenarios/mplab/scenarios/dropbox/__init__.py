"""Uploads to a file store: see README.md."""

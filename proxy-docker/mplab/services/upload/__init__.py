"""The service `upload`, the origin of file stores: see README.md."""

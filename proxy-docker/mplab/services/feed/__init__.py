"""The service `feed`, the origin of a social network: see README.md."""

"""Music: see README.md."""

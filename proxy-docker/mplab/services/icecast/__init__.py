"""Sound: see README.md."""

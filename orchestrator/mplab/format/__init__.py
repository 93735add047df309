"""Models of the files in a run directory and of users' files."""

"""The models of what is written in a run directory and in users' files."""

"""The scenario `firefox`: see README.md."""

"""The scenario `radio`: see README.md."""

"""The scenario `download`: see README.md."""

"""The scenario `spotify`: see README.md."""

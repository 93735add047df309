"""The scenario `web`: see README.md."""

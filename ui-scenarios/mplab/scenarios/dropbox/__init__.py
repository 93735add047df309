"""The scenario `dropbox`: see README.md."""

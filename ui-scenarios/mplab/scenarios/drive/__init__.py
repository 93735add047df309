"""The scenario `drive`: see README.md."""

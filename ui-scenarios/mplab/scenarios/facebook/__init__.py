"""The scenario `facebook`: see README.md."""

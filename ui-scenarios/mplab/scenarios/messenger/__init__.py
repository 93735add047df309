"""The scenario `messenger`: see README.md."""

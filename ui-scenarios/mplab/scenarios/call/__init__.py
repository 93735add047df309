"""The scenario `call`: see README.md."""

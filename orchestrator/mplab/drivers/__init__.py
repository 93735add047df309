"""Drivers: one package for each kind of thing that a lab drives."""

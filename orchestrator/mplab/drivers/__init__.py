"""Drivers: one package for each kind of resource that a lab controls."""

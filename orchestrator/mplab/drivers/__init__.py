"""Drivers of the resources that a lab controls: one package for each kind of resource."""

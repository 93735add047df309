"""Proxy of the virtual lab: a process in its own node."""

"""Transports of this distribution."""

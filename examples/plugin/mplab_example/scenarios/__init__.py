"""Scenarios of this distribution."""

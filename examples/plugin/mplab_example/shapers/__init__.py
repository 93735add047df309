"""Shapers of this distribution."""

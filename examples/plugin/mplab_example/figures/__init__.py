"""Figures of this distribution."""

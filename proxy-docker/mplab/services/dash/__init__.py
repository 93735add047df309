"""Adaptive video: see README.md."""

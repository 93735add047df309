"""Clips of a video site, 240p to 1080p: see README.md."""

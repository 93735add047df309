"""Clips of a video site, 240p to 720p: see README.md."""

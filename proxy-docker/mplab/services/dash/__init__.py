"""The service `dash`, adaptive video: see README.md."""

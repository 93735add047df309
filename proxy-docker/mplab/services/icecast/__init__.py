"""The service `icecast`, radio and music: see README.md."""

"""A router that a command of its owner shapes."""

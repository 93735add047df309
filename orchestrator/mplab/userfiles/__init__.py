"""Readers of users' files: strict YAML with line numbers, inheritance, variables, units."""

"""Strict reading of every kind of user file: YAML with line numbers, inheritance, validation.

Belongs here: code that no single kind of file owns. Not here: keys of a file.
"""

"""Experiment files: models, then layers and variables (before validation), then resolution of names.

Belongs here: every key of an experiment file, of a scenario's entry and of a transport's entry. Not here: what the
scenario or transport does with it.
"""

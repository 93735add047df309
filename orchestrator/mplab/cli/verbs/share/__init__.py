"""Verbs that publish a run, and that check what others have published."""

"""Verbs that read runs: list, analyse, show and compare them."""

"""Verbs that read runs: analyse, show, compare, publish and reproduce them."""

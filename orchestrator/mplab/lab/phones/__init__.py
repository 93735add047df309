"""Kinds of phone, one package each: how a lab file names it, what it needs, and the lab around it."""

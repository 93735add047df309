"""Kinds of phone, one package each: its name in a lab file, its needs, and the lab around it."""

"""How long small requests wait for their first byte."""

"""The scenario `first-byte`: how long small requests wait for their first byte."""

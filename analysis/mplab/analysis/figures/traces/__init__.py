"""Figures from mptrace's tables. What is drawn after which figure of which paper: docs/figures.md."""

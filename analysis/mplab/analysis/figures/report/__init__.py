"""Figures from the statistics of a run, on the page of every run that has their data."""

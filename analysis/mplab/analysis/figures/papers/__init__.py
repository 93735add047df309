"""Figures after one figure of a paper each, from the scores of a run's cells.

A module is called as the experiment that makes its data (``experiments/nikravesh2016-fig14.yaml``).
"""

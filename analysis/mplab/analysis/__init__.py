"""Compute the scores, statistics, figures and report of a run from the files of its run directory.

`mplab.results` is for notebooks and scripts.
"""

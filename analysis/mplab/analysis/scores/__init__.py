"""Compute the scores of one cell from its observations and tables.

This package loads the metrics and the ``score`` function that a scenario declares, checks the values, and adds scores
that need no app: hand-overs, and shares of the interfaces. Scores of apps are in the scenarios' folders, those that
several apps share in `mplab.scenarios.base.scoring`.
"""

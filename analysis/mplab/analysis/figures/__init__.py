"""Figures: plug-ins of the group ``mplab.figures``, one module each.

A module's object ``FIGURE`` has one of the kinds in `mplab.analysis.figures.kinds`; only the entry point names the
module. mplab's figures are in the packages `report`, `traces` and `papers`. `mplab.analysis.figures.catalog` loads and
draws these and the figures of other distributions.
"""

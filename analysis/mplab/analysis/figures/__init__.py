"""Figures: plug-ins of the group ``mplab.figures``, one module each.

A module's object ``FIGURE`` is of one of the kinds in `mplab.analysis.figures.kinds`; nothing else names the module.
Those in the packages `report`, `traces` and `papers` are mplab's own; `mplab.analysis.figures.catalog` loads and draws
them and those of other distributions.
"""

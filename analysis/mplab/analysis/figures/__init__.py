"""Draw figures; each is a plug-in of the group ``mplab.figures``, in a module of its own.

A module's object ``FIGURE`` has one of the kinds in `mplab.analysis.figures.kinds`; only the entry point names the
module. mplab's figures are in the packages `report`, `traces` and `papers`. `mplab.analysis.figures.catalog` loads and
draws these and the figures of other distributions.
"""

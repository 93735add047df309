"""Draw figures; each is a plug-in of the group ``mplab.figures``, in a separate module.

Each module defines an object ``FIGURE`` of one of the kinds in `mplab.analysis.figures.kinds`, and is registered only
by its entry point. mplab's figures are in the packages `report`, `traces` and `papers`.
`mplab.analysis.figures.catalog` loads and draws these and the figures of other distributions.
"""

"""Draw figures that reproduce a figure or section of a paper from the scores of a run's cells.

A module has the name of the experiment that makes its data (``experiments/nikravesh2016-fig14.yaml``).
"""

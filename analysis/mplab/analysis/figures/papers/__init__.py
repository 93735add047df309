"""Draw figures that reproduce a figure or section of a paper from the scores of a run's cells.

Each module is named after the experiment file that makes its data (``experiments/nikravesh2016-fig14.yaml``).
"""

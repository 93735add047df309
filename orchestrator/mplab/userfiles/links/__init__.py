"""Link conditions: paths, changes while a scenario runs, sweeps, values over time.

Belongs here: every key of a link file. Not here: applying a condition to a link (`drivers.shaper`).
"""

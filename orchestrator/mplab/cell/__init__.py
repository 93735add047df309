"""Run one cell: its steps, its evidence, its verdict.

Belongs here: one attempt at a cell. Not here: retries and the order of cells (`run`), names of drivers (`drivers`).
"""

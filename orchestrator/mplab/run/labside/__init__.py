"""Process inside the lab of a run: cell after cell, with retries and stop rules.

Belongs here: code that decides from the run directory only. Not here: what needs the host (it asks by `run.hostrpc`),
the steps of a cell (`cell`).
"""

"""Draw figures from the statistics of a run; each is in the report of every run that has data for it."""

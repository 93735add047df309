"""Compute the scores of one cell from its observations and tables; look up the metrics that scenarios declare."""

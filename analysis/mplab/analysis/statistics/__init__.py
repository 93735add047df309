"""Summarise the scores of cells: intervals, effect sizes, contrasts. This package reads no files and draws nothing."""
